package controlplane

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRunAll(t *testing.T) {
	stopped := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	fails := func(context.Context) error { return errors.New("broken") }
	returns := func(context.Context) error { return nil }
	failsLate := func(ctx context.Context) error { <-ctx.Done(); return errors.New("on the way down") }
	cases := map[string]struct {
		parts []part
		stop  bool
		want  string
	}{
		"a part that fails stops the others and is named":     {parts: []part{{"a", stopped}, {"b", fails}, {"c", failsLate}}, want: "b: broken"},
		"a part that just returns is an error":                {parts: []part{{"a", stopped}, {"b", returns}}, want: "b: ended by itself"},
		"parts that are stopped are none":                     {parts: []part{{"a", stopped}, {"b", stopped}}, stop: true},
		"a fault of a part that is being stopped is not ours": {parts: []part{{"a", failsLate}}, stop: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			started := false
			err := runAll(ctx, tc.parts, func() {
				started = true
				if tc.stop {
					stop()
				}
			})
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			if !started {
				t.Error("nobody was told that all had started")
			}
		})
	}
}
