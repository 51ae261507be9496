// Package link reads how much the network interfaces of a host send, and could:
//
//	sent      = Δ tx_bytes / Δ t      in bytes per second
//	bandwidth = speed · 10^6 / 8      in bytes per second
//
// Interfaces without a cable, and most of virtual machines, tell no speed; veth tell
// 10 Gbit/s, whatever is behind them. Such a value is missing, with the reason, and
// never 0.
//
// Source: Linux, ABI/testing/sysfs-class-net and sysfs-class-net-statistics.
//
//	before, err := link.Read("", "eth0")
//	…
//	sent, err := link.Sent(before, after)
package link
