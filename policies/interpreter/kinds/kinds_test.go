package kinds_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

func TestAwaits(t *testing.T) {
	pending := &kinds.Pending{Of: "webhook w", After: time.Second}
	for name, tc := range map[string]struct {
		err    error
		after  time.Duration
		awaits bool
	}{
		"an answer is on its way":  {pending, time.Second, true},
		"it is so within a fault":  {fmt.Errorf("judge Widget shop/w: %w", pending), time.Second, true},
		"a fault is no answer":     {err: errors.New("it broke")},
		"nothing is wrong at all":  {},
		"one that comes right now": {&kinds.Pending{Of: "webhook w"}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			if after, awaits := kinds.Awaits(tc.err); after != tc.after || awaits != tc.awaits {
				t.Errorf("Awaits = %s, %t, want %s, %t", after, awaits, tc.after, tc.awaits)
			}
		})
	}
	if got, want := pending.Error(), "waits for the answer of webhook w"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
}

func TestTable(t *testing.T) {
	gadget := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Gadget"}
	table := kinds.Table{gadget: {Retains: func(kinds.Object) bool { return true }}}
	if rules := table.Rules(gadget); rules.Retains == nil || rules.Health != nil {
		t.Error("the rules of a kind are not those that it was given")
	}
	if rules := table.Rules(gadget.GroupVersion().WithKind("Other")); rules.Retains != nil {
		t.Error("a kind of which nothing is known has rules")
	}
}
