// Visibility of the runtime's public symbols; everything else is hidden.
#pragma once

#define NPU_API __attribute__((visibility("default")))
