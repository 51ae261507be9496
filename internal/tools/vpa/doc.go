// Package vpa asks the recommender and the updater of the VerticalPodAutoscaler themselves
// what they make of 200 random objects and loads. What they say is a table that tests of
// cmd/trimtab read.
//
//	go -C internal/tools/vpa test .            # the table is what they do
//	go -C internal/tools/vpa test . -update    # writes it
package vpa
