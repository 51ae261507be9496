//go:build integration

package main

import "testing"

func TestAHundredKilledProgramsAreRestored(t *testing.T) { killPrograms(t, 100) }
