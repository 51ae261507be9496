// Package hpa asks the HorizontalPodAutoscaler controller of Kubernetes itself what it does
// with a block `behavior`: the controller runs on a fake API and a fake clock, is shown
// usage look by look, and what it sets is the table in planner/behavior/testdata.
//
//	go -C internal/tools/kube test ./hpa            # the table is what the controller does
//	go -C internal/tools/kube test ./hpa -update    # writes it
package hpa
