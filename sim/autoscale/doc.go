// Package autoscale computes the decisions of HorizontalPodAutoscaler, VerticalPodAutoscaler, KEDA,
// EKS's resource optimization and DatadogPodAutoscaler from the same inputs, in their own terms, so
// that a replay or a simulation can compare with them.
//
//	HPA   ⌈Σ usage / target⌉ with tolerance, missing and unready pods, then `behavior`
//	KEDA  ⌈Σ metric / threshold⌉ by an HPA; 0 ↔ 1, cooldown, idle, fallback by itself
//	VPA   quantile of a histogram with decaying weights · (1 + margin); lower and upper
//	      bounds with confidence; a pod is changed when its request is out of them
//	EKS   p95 of use / 0.87, after 12 h of use
//	DPA   p95 of 8 days · 1.05 where request = limit
//
// The histogram's buckets grow by 5%; the weight of a sample halves in 24 h. Confidence
// is min(days of history, samples/1440):
//
//	target  p90 · 1.15
//	lower   p50 · 1.15 · (1 + 0.001/confidence)^−2
//	upper   p95 · 1.15 · (1 + 1/confidence)
//
// Of memory the peaks of 24 h are in the histogram, and what an OOM asks for: 1.2 times the request or
// the peak, and at least 100 MiB more.
//
// Amounts are in thousandths, and are rounded or truncated exactly where the controllers do it,
// since that decides at the edge of a tolerance. internal/tools/kube compares the results with the
// real controllers.
//
// Left out: several containers of a pod, KEDA's formulas and cached metrics, checkpoints, and what EKS
// and Datadog do not publish: how EKS sizes memory, the window of its percentile (here 8 days, as
// Datadog's), and by how much a request must be off before it is changed (here 2% up, a tenth down).
//
// Source: Kubernetes 1.37.1, pkg/controller/podautoscaler; kubernetes/autoscaler, VPA
// 1.8.1, pkg/recommender/{util,logic,model} and pkg/updater; KEDA 2.21, pkg/scaling and
// pkg/fallback; Amazon EKS, resource optimization of Auto Mode (preview, November 2026), as reported;
// Datadog, Kubernetes Autoscaling, "How vertical recommendations are calculated" (2026). The package
// scales nothing and knows no API.
package autoscale
