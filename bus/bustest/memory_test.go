package bustest

import (
	"testing"

	"github.com/trimtab/trimtab/bus"
)

func TestMemoryKeepsTheContract(t *testing.T) {
	Run(t, func(*testing.T) bus.Bus { return NewMemory() })
}
