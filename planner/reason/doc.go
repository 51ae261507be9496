// Package reason says in words why a workload gets what it gets, or keeps what it has. It only reads
// what the passes of a round found, and changes nothing.
package reason
