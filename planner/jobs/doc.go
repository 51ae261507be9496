// Package jobs manages the jobs of a pool: it places their tasks on hosts, speculatively
// or with a regular grant, and knows of each task that it runs at most once at a time.
package jobs
