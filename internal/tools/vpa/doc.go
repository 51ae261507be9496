// Package vpa runs the recommender and the updater of the VerticalPodAutoscaler on 200 random
// objects and loads. Tests of cmd/trimtab and sim/autoscale read the tables of their results.
//
//	go -C internal/tools/vpa test .            # the tables are what they do
//	go -C internal/tools/vpa test . -update    # writes them
package vpa
