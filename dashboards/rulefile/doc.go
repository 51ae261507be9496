// Package rulefile checks files of Prometheus rules against the metrics that
// trimtab has, so that a rule does not wait for a series that never comes.
//
// A file is read strictly: unknown keys, rules that neither record nor alert,
// durations that Prometheus does not read. A name in an expression that begins
// with "trimtab" must be
//
//	in the table of metrics ∪ recorded by trimtab's rules ∪ recorded by the files
//
// where a histogram goes by _bucket, _sum and _count. It is no PromQL parser:
// `promtool check rules` says the rest about the syntax of expressions. Anchors
// and aliases are not read.
//
//	problems := rulefile.Check([]rulefile.File{{Name: "shop.yaml", Data: data}})
package rulefile
