package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/bench/requests"
	"github.com/flotilla-io/flotilla/bench/results"
	"github.com/flotilla-io/flotilla/bench/usage"
)

// footprint is what the control plane holds in memory, in bytes.
type footprint struct {
	// Live is the heap right after it was collected.
	Live float64 `json:"live"`
	// Resident is the memory of the process that is no file.
	Resident float64 `json:"resident"`

	profile []byte // what holds it, for go tool pprof
}

// memory measures what one template in one cluster takes: the live heap of the
// control plane with some templates and with many more, each after a restart,
// and the difference divided by how many pairs of template and cluster there are
// more. That holds all that the process keeps of them: what the loops have
// cached of templates, bindings, Works and members' objects, and what the server
// and its store keep. Without the restart it would also hold the past of the
// burst that made them, which the server keeps for those who watch; that is shown
// apart.
func memory(ctx context.Context, b *bench, r *results.Report) error {
	const few = 100
	if err := propagateReporting(ctx, b, "few", few); err != nil {
		return err
	}
	before, err := afresh(ctx, b)
	if err != nil {
		return err
	}
	if err := b.hub.Create(ctx, policyFor("kept")); err != nil {
		return fmt.Errorf("create the policy: %w", err)
	}
	if err := b.createMany(ctx, "kept", b.kept, reporting); err != nil {
		return err
	}
	if err := awaitStatuses(ctx, b, "kept", b.kept); err != nil {
		return err
	}
	burst, err := measureHeap(ctx, b)
	if err != nil {
		return err
	}
	after, err := afresh(ctx, b)
	if err != nil {
		return err
	}
	pairs := float64(b.kept * len(b.fakes.Members))
	const kB = 1000
	r.AtMost("12", fmt.Sprintf("memory per template and cluster, %d on %d", b.kept, len(b.fakes.Members)), (after.Live-before.Live)/pairs/kB, "KB", 15)
	r.Note("12", "the same right after they were made, with the server's past", (burst.Live-before.Live)/pairs/kB, "KB")
	r.Note("12", "resident memory per template and cluster, garbage included", (after.Resident-before.Resident)/pairs/kB, "KB")
	r.Note("12", fmt.Sprintf("live heap with %d templates on %d clusters", few, len(b.fakes.Members)), before.Live/(1<<20), "MiB")
	r.Note("12", fmt.Sprintf("live heap with %d more", b.kept), after.Live/(1<<20), "MiB")
	if err := r.Raw("memory", map[string]footprint{"before": before, "burst": burst, "after": after}); err != nil {
		return err
	}
	return errors.Join(r.Profile("memory-before", before.profile), r.Profile("memory-after", after.profile))
}

// afresh restarts the control plane and measures it once all is quiet.
func afresh(ctx context.Context, b *bench) (footprint, error) {
	if err := errors.Join(b.fleet.Hub.Stop(), b.fleet.Hub.Start()); err != nil {
		return footprint{}, err
	}
	if err := b.fleet.Hub.Ready(ctx); err != nil {
		return footprint{}, err
	}
	// Members are watched again, and their caches are full.
	if _, err := b.quiet(ctx, 10*time.Second); err != nil {
		return footprint{}, err
	}
	return measureHeap(ctx, b)
}

// measureHeap has the heap collected and measures it, a few times; the smallest
// counts.
func measureHeap(ctx context.Context, b *bench) (footprint, error) {
	out := footprint{}
	for range 3 {
		profile, err := b.kube.Discovery().RESTClient().Get().AbsPath("/debug/pprof/heap").Param("gc", "1").DoRaw(ctx)
		if err != nil {
			return out, fmt.Errorf("have the heap of the control plane collected: %w", err)
		}
		out.profile = profile
		size, err := heap(ctx, b)
		if err != nil {
			return out, err
		}
		if out.Live == 0 || size < out.Live {
			out.Live = size
		}
	}
	var err error
	out.Resident, err = usage.ResidentBytes(b.fleet.Hub.PID())
	return out, err
}

// heap returns the size of the control plane's heap.
func heap(ctx context.Context, b *bench) (float64, error) {
	families, err := requests.Metrics(ctx, b.kube.Discovery().RESTClient())
	if err != nil {
		return 0, err
	}
	family, ok := families["go_memstats_heap_alloc_bytes"]
	if !ok || len(family.GetMetric()) != 1 {
		return 0, errors.New("the control plane does not tell the size of its heap")
	}
	return family.GetMetric()[0].GetGauge().GetValue(), nil
}

// inGroup selects one measurement's Deployments.
func inGroup(of string) []client.ListOption {
	return []client.ListOption{client.InNamespace(namespace), client.MatchingLabels{group: of}}
}
