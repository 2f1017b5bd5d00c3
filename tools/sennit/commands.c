/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the command line, as scripts rely on them: add, do not rename. */
#include "tools/sennit/commands.h"
#include "tools/sennit/precision.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define BIG      1e15

static const char *const pipelines[] = {"gpipe", "1f1b", "zb", NULL};
static const char *const objectives[] = {"time", "spread", NULL};
static const char *const formats[] = {"safetensors", NULL};
static const char *const later_formats[] = {"onnx", "npz", NULL};
static const char *const sizes[] = {"S", "M", "L", NULL};
static const char *const workloads[] = {"h3", "inception", NULL};

/* Rows that several commands share. */
#define TEXT(n, v, h, ...)                                                                         \
  { .name = (n), .kind = ARG_TEXT, .value = (v), .help = (h), __VA_ARGS__ }
#define FLAG(n, h, ...)                                                                            \
  { .name = (n), .kind = ARG_FLAG, .help = (h), __VA_ARGS__ }
#define WHOLE(n, h, lo, hi)                                                                        \
  { .name = (n), .kind = ARG_INT, .value = "N", .help = (h), .min = (lo), .max = (hi) }
#define CHOICE(n, list, h, ...)                                                                    \
  { .name = (n), .kind = ARG_CHOICE, .value = "WORD", .choices = (list), .help = (h), __VA_ARGS__ }
#define NEEDED   .required = true
#define OPTIONAL .required = false
#define NOT_YET  .absent = true
#define DEVICES                                                                                    \
  TEXT("--devices", "LIST",                                                                        \
       "devices to use: cpu*2, or cpu:0,cpu:1 (default cpu:0); with a cap on the memory of each: " \
       "cpu:0=64MiB",                                                                              \
       OPTIONAL)
#define THREADS                                                                                    \
  WHOLE("--threads", "threads in all, shared out over the CPU devices (default: all cores)", 1,    \
        4096)
#define JSON                                                                                       \
  FLAG("--json", "one JSON object on standard output, all else on standard error", OPTIONAL)
#define CHECKPOINT                                                                                 \
  TEXT("--checkpoint", "FILE", "checkpoint, or the folder that train wrote", NEEDED)
#define PLACEMENT TEXT("--placement", "FILE", "place modules as this file says", OPTIONAL)
#define RECOMPUTE                                                                                  \
  TEXT("--recompute", "auto|none|LIST",                                                            \
       "what the backward pass computes again in place of keeping it: auto (default), what it "    \
       "takes to fit a cap on memory; none; or modules, as in strokes,trunk (a+b: as one)",        \
       OPTIONAL)
#define SAVE_PLACEMENT                                                                             \
  TEXT("--save-placement", "FILE",                                                                 \
       "write the placement found: a line a module, to edit and give back with --placement",       \
       .writes = ARG_OPENS)
#define OBJECTIVE                                                                                  \
  CHOICE("--objective", objectives,                                                                \
         "time: as many devices as pay (default); spread: every device", OPTIONAL)
#define PROFILE                                                                                    \
  TEXT("--profile", "N|FILE",                                                                      \
       "plan with measured costs: a number runs so many steps now and times every operation in "   \
       "them (weights are thrown away); a file is what --save-profile wrote",                      \
       OPTIONAL)
#define SAVE_PROFILE                                                                               \
  TEXT("--save-profile", "FILE", "write the measured costs, for later plans", .writes = ARG_OPENS)
#define PRECISION                                                                                  \
  CHOICE("--precision", precision_words,                                                           \
         "of products: bf16 rounds their operands; weights and all else stay f32 (default: the "   \
         "model's, which is f32 unless it says otherwise)",                                        \
         OPTIONAL)
#define SET                                                                                        \
  TEXT("--set", "KEY=VALUE", "override a key of the model file, such as train.batch=32",           \
       .repeats = true)
#define CONFIG TEXT("--config", "FILE", "model file (YAML)", NEEDED, .unless = "--model")
#define MODEL  TEXT("--model", "FILE.so", "a model written in C, instead of a model file", OPTIONAL)

static const arg_row inspect_rows[] = {
    {.name = "FILE", .kind = ARG_TEXT, .help = "HDF5 file with data, or a checkpoint", NEEDED},
    JSON,
};

static const arg_row init_rows[] = {
    {.name = "FILE", .kind = ARG_TEXT, .help = "HDF5 file with data", NEEDED},
    {.name = "--output",
     .letter = 'o',
     .kind = ARG_TEXT,
     .value = "FILE",
     .help = "model file to write (default model.yaml; - is standard output)"},
};

static const arg_row plan_rows[] = {
    TEXT("--data", "FILE", "HDF5 file with data", NEEDED, .repeats = true),
    CONFIG,
    MODEL,
    DEVICES,
    THREADS,
    PRECISION,
    OBJECTIVE,
    PLACEMENT,
    SET,
    SAVE_PLACEMENT,
    RECOMPUTE,
    TEXT("--dot", "FILE", "write the placed graph for Graphviz", .writes = ARG_OPENS),
    PROFILE,
    SAVE_PROFILE,
    TEXT("--html", "FILE", "write the report as one page for a browser", .writes = ARG_OPENS),
    JSON,
};

static const arg_row train_rows[] = {
    TEXT("--data", "FILE", "HDF5 file to train on", NEEDED, .repeats = true),
    CONFIG,
    TEXT("--out", "DIR", "folder for checkpoints and metrics", NEEDED),
    MODEL,
    TEXT("--valid", "FILE", "HDF5 file to validate on", .repeats = true,
         .excludes = "--valid-fraction"),
    {.name = "--valid-fraction",
     .kind = ARG_NUMBER,
     .value = "X",
     .help = "part of the training rows set aside for validation",
     .min = 0,
     .max = 1},
    TEXT("--test", "FILE", "HDF5 file to test the best checkpoint on", .repeats = true),
    DEVICES,
    THREADS,
    PRECISION,
    OBJECTIVE,
    PLACEMENT,
    SAVE_PLACEMENT,
    RECOMPUTE,
    WHOLE("--epochs", "times the data is seen: the schedule's horizon", 1, 1e6),
    WHOLE("--stop-after", "end after so many epochs, the horizon unchanged", 1, 1e6),
    WHOLE("--steps", "end after so many steps", 1, BIG),
    WHOLE("--batch", "rows in a step, over all devices", 1, 16777216),
    WHOLE("--micro-batches", "parts a batch is computed in", 1, 65536),
    CHOICE("--pipeline", pipelines,
           "run the micro-batches at once, each device on another: all forward first, backward as "
           "early as it can, or weight gradients in the gaps",
           OPTIONAL),
    WHOLE("--seed", "of initial weights, order and dropout", 0, 9007199254740992.0),
    FLAG("--no-shuffle", "rows in the order of the file", OPTIONAL),
    FLAG("--resume", "go on from the last checkpoint in --out", OPTIONAL),
    TEXT("--init", "FILE", "first weights, from a safetensors file", OPTIONAL),
    SET,
    PROFILE,
    SAVE_PROFILE,
    TEXT("--trace", "FILE",
         "write when each operation of a few steps ran, and when it was to, for Perfetto",
         .writes = ARG_OPENS),
    JSON,
};

static const arg_row eval_rows[] = {
    CHECKPOINT, TEXT("--data", "FILE", "HDF5 file with labels", NEEDED, .repeats = true),
    DEVICES,    THREADS,
    PRECISION,  PLACEMENT,
    JSON,
};

static const arg_row predict_rows[] = {
    CHECKPOINT,
    TEXT("--data", "FILE", "HDF5 file with the inputs", NEEDED, .repeats = true),
    TEXT("--out", "FILE", "HDF5 file to write predictions to", NEEDED, .writes = ARG_REPLACES),
    DEVICES,
    THREADS,
    PRECISION,
    PLACEMENT,
};

static const arg_row export_rows[] = {
    CHECKPOINT,
    CHOICE("--format", formats, "what to write", NEEDED, .later = later_formats),
    TEXT("--out", "FILE", "file to write", NEEDED, .writes = ARG_REPLACES),
};

static const arg_row debug_rows[] = {
    TEXT("--data", "FILE", "HDF5 file with data", NEEDED, .repeats = true),
    CONFIG,
    MODEL,
    {.name = "--rows", .kind = ARG_RANGE, .value = "A:B", .help = "rows of the step", NEEDED},
    TEXT("--out", "FILE", "HDF5 file to write the step to", NEEDED, .writes = ARG_REPLACES),
    TEXT("--init", "FILE", "first weights, from a safetensors file", OPTIONAL),
    DEVICES,
    THREADS,
    PRECISION,
    PLACEMENT,
    SET,
};

static const arg_row place_rows[] = {
    {.name = "FILE", .kind = ARG_TEXT, .help = "placement or memory instance", NEEDED},
    FLAG("--contiguous", "largest load: the best split into slices of the graph's order, proved",
         OPTIONAL),
    FLAG("--certify", "search until the answer is proved the best; for small problems", OPTIONAL),
    WHOLE("--evals", "budget of evaluations", 1, BIG),
    WHOLE("--seed", "of the search; the same seed gives the same answer on any machine", 0,
          9007199254740992.0),
    WHOLE("--devices", "devices, for forms that do not say how many (default 4)", 1, 256),
    JSON,
};

static const arg_row bench_rows[] = {
    {.name = "WORK", .kind = ARG_CHOICE, .help = "h3 or inception", .choices = workloads, NEEDED},
    CHOICE("--size", sizes, "size of the work", NEEDED),
    DEVICES,
    THREADS,
    WHOLE("--steps", "timed steps", 1, BIG),
    FLAG("--bf16", "products in bf16", OPTIONAL),
    TEXT("--write", "DIR", "write data.h5 and model.yaml instead of running", OPTIONAL),
    JSON,
};

static const arg_row devices_rows[] = {
    TEXT("--devices", "LIST", "show these: cpu*2, null*4 (default: what is here)", OPTIONAL),
    THREADS,
    JSON,
};

#define COMMAND(name_, run_, summary_, details_)                                                   \
  static const arg_command command_##name_ = {.name = #name_,                                      \
                                              .summary = (summary_),                               \
                                              .details = (details_),                               \
                                              .rows = name_##_rows,                                \
                                              .row_count = COUNT(name_##_rows),                    \
                                              .run = (run_)}

COMMAND(inspect, cmd_inspect,
        "show what a data file or checkpoint holds, and what would stop training",
        "Every dataset with shape, type, filters and ranges, class counts and lengths, and every "
        "finding at once.");
COMMAND(init, cmd_init, "guess a first model file from the data", NULL);
COMMAND(plan, cmd_plan, "show where each module would run, and what that costs", NULL);
COMMAND(train, cmd_train, "train a model",
        "SIGINT and SIGTERM end the run after the step in hand, with a checkpoint to go on from "
        "(--resume); a second one ends it at once.");
COMMAND(eval, cmd_eval, "measure a checkpoint on data with labels", NULL);
COMMAND(predict, cmd_predict, "predict with a checkpoint", NULL);
COMMAND(export, cmd_export, "write a checkpoint's weights in another format", NULL);
COMMAND(debug, cmd_debug, "write everything about one training step", NULL);
COMMAND(place, cmd_place, "solve a public placement instance, and say how good the answer is",
        "Reads dnn-partitioning JSON (largest load), doppler text (makespan), pipedream profiles "
        "(largest load), minimalloc CSV (memory) and sennit-placement JSON.");
COMMAND(bench, cmd_bench, "time the reference work, beside what the machine can do", NULL);
COMMAND(devices, cmd_devices, "show devices with memory, rates and links",
        "Rates are constants of each kind that plans compare, not measurements.");

const arg_command *const sn__commands[] = {
    &command_inspect, &command_init,    &command_plan,    &command_train,
    &command_eval,    &command_predict, &command_export,  &command_debug,
    &command_place,   &command_bench,   &command_devices,
};
const size_t sn__command_count = COUNT(sn__commands);
