// Package rapl reads the power of a host's processor packages, their power limits, and the clock of
// its CPUs:
//
//	power       = Δ energy_uj / Δ t                    in W; energy_uj begins at 0 again after max_energy_range_uj
//	power limit = power limit of the constraint long_term   in W: the TDP, unless somebody set another
//	frequency   = scaling_cur_freq                     in MHz, of each policy
//
// Only the zones intel-rapl:N whose name begins with package are read, those of AMD
// processors included: the others are parts of these (core, uncore, dram), overlap
// them (psys), or say the same again (intel-rapl-mmio).
//
// A value that cannot be read is missing, with the reason: a host without RAPL, as
// most virtual machines are; no right to read energy_uj, which since Linux 5.10 root
// alone has; the first reading. It is never 0.
//
// Source: Linux, power/powercap/powercap.rst; ABI/testing/sysfs-class-powercap;
// admin-guide/pm/cpufreq.rst. It was tried on trees of files that are as those, not on
// hardware.
//
//	before, _ := r.Read()
//	after, err := r.Read()
//	draws, may, err := rapl.Power(before, after)
package rapl
