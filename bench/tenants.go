package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/tenants"
)

// neighbours times commits of a tenant, alone and while another one attacks.
func neighbours(ctx context.Context, b *bench, r *results.Report) (err error) {
	fleet := tenants.Fleet{Connect: func() (client.WithWatch, error) { return clientOf(b.fleet.Hub) }, Git: b.fleet.Git, Dir: b.dir}
	victim, err := tenants.NewVictim(ctx, fleet)
	if err != nil {
		return err
	}
	attack, err := tenants.NewAttack(ctx, fleet)
	if err != nil {
		return err
	}
	if _, err := b.quiet(ctx, 2*time.Second); err != nil {
		return err
	}
	alone, err := victim.Commits(ctx, b.samples)
	if err != nil {
		return err
	}
	before, err := b.count(ctx)
	if err != nil {
		return err
	}
	if err := attack.Start(ctx); err != nil {
		return err
	}
	attacked, err := victim.Commits(ctx, b.samples)
	if err := errors.Join(err, attack.Stop()); err != nil {
		return err
	}
	outcomes, err := attack.Outcomes(ctx)
	if err != nil {
		return err
	}
	after, err := b.count(ctx)
	if err != nil {
		return err
	}
	for _, p := range []float64{0.5, 0.9, 0.99} {
		was, is := results.Percentile(tenants.Applied(alone), p), results.Percentile(tenants.Applied(attacked), p)
		name := fmt.Sprintf("a commit until it is applied, p%g", 100*p)
		r.Note("tenants", name+", alone", was, "ms")
		r.Note("tenants", name+", while another tenant attacks", is, "ms")
		r.AtMost("tenants", name+", attacked to alone", is/was, "×", 2)
	}
	objects := 0
	for _, o := range outcomes {
		objects += o.Objects
	}
	r.Note("tenants", "objects that the other tenant has come to own", float64(objects), "objects")
	cost := after.since(before)
	r.Note("tenants", "writes meanwhile", float64(cost.Revision), "writes")
	r.Note("tenants", "CPU time of the control plane meanwhile", cost.CPU["control plane"], "s")
	return r.Raw("tenants", map[string]any{"alone": alone, "attacked": attacked, "attack": outcomes, "counters": cost})
}
