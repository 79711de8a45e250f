package program

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/cmd/flotillad/features"
	"github.com/flotilla-io/flotilla/reconciler"
)

// TestNoGateIsIdle: what a gate switches reaches the loops and the control plane, unless the gate is one that is fixed here.
func TestNoGateIsIdle(t *testing.T) {
	type switched struct {
		Off      reconciler.Off
		Failover reconciler.Failover
		Quotas   bool
	}
	with := func(gate string, on bool) switched {
		t.Helper()
		args := []string{"--enable-no-execute-taint-eviction", "--feature-gates=Failover=true"} // without both, the gate Failover alone moves nothing
		if gate != "" {
			args = append(args, fmt.Sprintf("--feature-gates=%s=%t", gate, on))
		}
		o, err := served(t, args...)
		if err != nil {
			t.Fatal(err)
		}
		return switched{o.loops.scheduling.Off, o.loops.scheduling.Failover, !o.plane.Rules.IgnoreQuotas}
	}
	for _, gate := range features.All() {
		if gate.Fixed {
			continue
		}
		if cmp.Equal(with(gate.Name, true), with(gate.Name, false)) {
			t.Errorf("%s: %s, and it is the same without", gate.Name, gate.Here)
		}
	}
	if cmp.Equal(with("FederatedQuotaEnforcement", false).Quotas, with("", false).Quotas) {
		t.Error("bindings are held against quotas all the same")
	}
}
