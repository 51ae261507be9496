package jobs

import (
	"log"
	"os"
	"testing"

	"github.com/trimtab/trimtab/internal/trial"
)

// The properties of this package play whole lives, so a test run has fewer of them.
func TestMain(m *testing.M) {
	if err := trial.Properties("25"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}
