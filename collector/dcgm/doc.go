// Package dcgm reads the use, memory and power of NVIDIA GPUs from a DCGM exporter:
//
//	gpu_use          DCGM_FI_PROF_GR_ENGINE_ACTIVE, or DCGM_FI_DEV_GPU_UTIL / 100    busy GPUs
//	gpu_memory       DCGM_FI_DEV_FB_USED · 2²⁰                                       bytes
//	gpu_memory_free  DCGM_FI_DEV_FB_FREE · 2²⁰, of the host alone                    bytes
//	gpu_power        DCGM_FI_DEV_POWER_USAGE                                         W
//
// of each GPU or MIG instance of the host, and of each pod of a workload, over its GPUs.
//
// Labels say to which device and pod a line belongs: UUID (or uuid) and, for a MIG instance,
// GPU_I_ID; pod, namespace (or pod_name, pod_namespace); hpc_job. The exporter repeats a line for
// each pod, container or job that has the GPU, and the power of a GPU for each of its MIG
// instances. So each device counts once, however many lines it has:
//
//   - a pod that has its GPUs alone has their values, added up;
//   - of a GPU that several share, a pod has the values that the exporter takes by process:
//     those beside a line of the device without a pod. The others are missing;
//   - power of a MIG instance is missing: what is told is that of the whole GPU.
//
// The package asks over HTTP. It does not load NVML, which takes cgo or NVIDIA's library. It
// has run on expositions made after the exporter's sources only, never beside a GPU.
//
// Source: NVIDIA/dcgm-exporter 4.5.3, internal/pkg/{rendermetrics,transformation},
// etc/default-counters.csv, issues 151, 257 and 582.
package dcgm
