// Package keda is an external scaler of KEDA: it answers KEDA's questions with the
// number of pods that the newest plan wants. The HorizontalPodAutoscaler that KEDA keeps
// then sets the number, within the bounds of its ScaledObject.
//
//	value of the metric = wanted pods * targetSize, where targetSize is what one pod stands for
//
// It never answers with a guess. Without a plan, with one that is older than two rounds
// or whose lease ended, and for a workload that the plan keeps as it is because an input
// is missing, the answer is an error, which KEDA treats as a failed read: never 0, and
// never the last number.
//
// The protocol is externalscaler.proto of KEDA 2.21. Its messages are a few strings and
// numbers, read and written here in their encoded form.
//
//	e, err := keda.Open(keda.Config{Listen: "127.0.0.1:9601", Pool: "default", Round: 15 * time.Second, Workloads: declared, Metrics: set})
//	stop, err := e.Follow(ctx, bus)
//	…
//	stop()
//	err = e.Close()
package keda
