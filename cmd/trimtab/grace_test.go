package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab/actuator"
)

func TestTheChartWaitsUntilEveryBaselineIsPutBack(t *testing.T) {
	text, err := os.ReadFile("../../deploy/helm/trimtab/templates/deployment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`terminationGracePeriodSeconds: {{ if eq .Values.mode "act" }}%.0f{{`, (actuator.MaxCloseTime + 30*time.Second).Seconds())
	if !strings.Contains(string(text), want) {
		t.Errorf("the chart's Deployment does not say %s", want)
	}
}
