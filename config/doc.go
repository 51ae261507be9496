// Package config reads trimtab's one YAML file: defaults, strict decoding,
// and validation that answers every mistake with file:line:col and a hint.
//
// All mistakes of a file are reported together, in order of position, as
// [Errors]; what is dubious but usable is a warning ([Config.Warnings]). The
// reader is total: any bytes give a configuration or Errors, within
// [MaxBytes] and [MaxDepth]. Anchors, aliases, tags and several documents are
// refused, since none of them is needed and all of them hide mistakes.
//
// A utility is an expression over a workload's performance,
//
//	u(p) = clamp(expression(p, slo, m), 0, 1),   m = min(1, p/slo)
//
// that must not fall with p (Source: Cilantro, OSDI'23, section 4.1). A match
// is expanded into PromQL label matchers ([Match.Expand]).
//
// Secrets never leave: their type prints <secret> in every form, and
// [Config.Redacted] is the configuration as it may be shown. The package does
// not watch files: the caller loads again and keeps the old configuration
// when that fails; [Changed] says what differs.
//
//	c, err := config.Load("trimtab.yaml")
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err) // trimtab.yaml:7:12: unknown key …
//	}
package config
