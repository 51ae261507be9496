// Package wire converts the configuration of a process's external connections: the bus and
// Prometheus. The pipeline (package site) opens both with it, and trimtab doctor tries them
// (package doctor). It reads one file, that of the bus's token, and connects to nothing.
package wire
