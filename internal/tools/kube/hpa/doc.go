// Package hpa finds out what the HorizontalPodAutoscaler controller of Kubernetes does with a
// `behavior` block: the controller runs on a fake API and a fake clock, is shown usage look by
// look, and what it sets is the table in planner/behavior/testdata. With 200 random objects and
// loads it writes one in cmd/trimtab/testdata.
//
//	go -C internal/tools/kube test ./hpa            # the tables are what the controller does
//	go -C internal/tools/kube test ./hpa -update    # writes them
package hpa
