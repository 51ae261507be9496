// Package vpa runs the recommender and the updater of the VerticalPodAutoscaler on 200 random
// objects and loads. Tests of cmd/trimtab read the table of their results.
//
//	go -C internal/tools/vpa test .            # the table is what they do
//	go -C internal/tools/vpa test . -update    # writes it
package vpa
