// Package planner turns estimates into plans: each round it solves the
// pool's objective for a target, moves a bounded step towards it, passes the
// step through the guard, and publishes it as a plan whose shrinks come first
// and whose grows are released only against confirmed shrinks.
//
// Source: Cilantro (OSDI'23), sections 4.1.2 and 4.1.3, for the policies
// (subfolders welfare and fair). It reads no clock and writes no knob.
package planner
