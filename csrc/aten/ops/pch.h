// Headers that the generated operators share, compiled once.
#pragma once

#include <ATen/core/boxing/impl/boxing.h>
#include <torch/library.h>

#include "aten/ops/given_outputs.h"
#include "aten/ops/host_call.h"
#include "aten/ops/iterator.h"
#include "aten/ops/kernel_route.h"
#include "aten/ops/library.h"
#include "aten/ops/library_tasks.h"
#include "aten/ops/shape_rules.h"
