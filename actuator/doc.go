// Package actuator carries out plans on one host: it checks the epoch, clamps
// to the declared bounds, compares with the value found, writes the journal,
// writes once, reads back and reports; and it restores the baselines when the
// lease runs out. The subfolders hold the knobs.
package actuator
