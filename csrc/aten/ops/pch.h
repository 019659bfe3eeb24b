// Headers that the generated operators share, compiled once.
#pragma once

#include <torch/library.h>

#include "aten/ops/iterator.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/library.h"
