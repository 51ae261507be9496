// Package learntest holds what every learn.Learner must satisfy: a
// conformance suite, and a harness that measures the coverage of the bounds,
//
//	coverage = share of the visited range in which lower <= p(a, l) <= upper,
//
// on curves that are known. A learner's own test calls both:
//
//	learntest.Run(t, func() learn.Learner { … })
//	rows := learntest.Coverage(make, learntest.Curves(), learntest.Plan{Seeds: 20})
//
// The package reads no files: recorded profiles come as text to ReadProfile.
package learntest
