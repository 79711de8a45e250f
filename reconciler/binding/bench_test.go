package binding_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
)

// BenchmarkLatency measures the time from the server's answer to the creation
// of a Deployment until the Works of three clusters are there, on an idle
// server without a disk.
func BenchmarkLatency(b *testing.B) {
	f := newFleet(b, "a", "b", "c")
	f.create(f.policy("all", deployments("")))
	f.awaitIdle()
	works := f.watchWorks()
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		f.create(f.deployment(fmt.Sprintf("web-%d", i)))
		begin := time.Now()
		for range 3 {
			<-works
		}
		took = append(took, time.Since(begin))
	}
	report(b, took)
}

// BenchmarkChange measures the time from the server's answer to another image
// until the Works of three clusters have it, on an idle server without a disk.
func BenchmarkChange(b *testing.B) {
	f := newFleet(b, "a", "b", "c")
	web := f.deployment("web")
	f.create(f.policy("all", deployments("")))
	works := f.watchWorks()
	f.create(web)
	for range 3 {
		<-works
	}
	var took []time.Duration
	for i := 0; b.Loop(); i++ {
		f.awaitIdle()
		edit(f, web, func(d *appsv1.Deployment) {
			d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("registry.example/web:%d", i+2)
		})
		begin := time.Now()
		for range 3 {
			<-works
		}
		took = append(took, time.Since(begin))
	}
	report(b, took)
}

// report prints the median and the 99th percentile of how long each round took.
func report(b *testing.B, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
}

// BenchmarkThroughput measures how long 500 Deployments take until they have
// their Works in three clusters, all created at once.
func BenchmarkThroughput(b *testing.B) {
	const many = 500
	f := newFleet(b, "a", "b", "c")
	f.create(f.policy("all", deployments("")))
	f.awaitIdle()
	works := f.watchWorks()
	for round := 0; b.Loop(); round++ {
		var group errgroup.Group
		group.SetLimit(16)
		for i := range many {
			group.Go(func() error {
				return f.env.Hub.Create(f.Context(), f.deployment(fmt.Sprintf("web-%d-%d", round, i)))
			})
		}
		f.check(group.Wait())
		for range 3 * many {
			<-works
		}
	}
	b.ReportMetric(float64(3*many*b.N)/b.Elapsed().Seconds(), "works/s")
	b.Log(f.awaitIdle())
}

// BenchmarkRestart measures how long the loops take to come up with 500
// Deployments on three clusters and nothing to do.
func BenchmarkRestart(b *testing.B) {
	const many = 500
	f := newFleet(b, "a", "b", "c")
	f.create(f.policy("all", deployments("")))
	works := f.watchWorks()
	for i := range many {
		f.create(f.deployment(fmt.Sprintf("web-%d", i)))
	}
	for range 3 * many {
		<-works
	}
	f.awaitIdle()
	last := f.deployment(fmt.Sprintf("web-%d", many-1))
	for replicas := int32(3); b.Loop(); replicas++ {
		f.stop()
		edit(f, last, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To(replicas) })
		runtime.GC()
		f.start()
		begin := time.Now()
		for range 3 {
			<-works
		}
		b.ReportMetric(float64(time.Since(begin).Milliseconds()), "first-change-ms")
		b.Log(f.awaitIdle())
	}
}

// watchWorks sends a value for each Work of this test that is created or whose
// spec changes.
func (f *fleet) watchWorks() <-chan struct{} {
	f.Helper()
	hub, err := client.NewWithWatch(f.env.Config, client.Options{Scheme: scheme.New()})
	f.check(err)
	watch, err := hub.Watch(f.Context(), &workv1alpha1.WorkList{})
	f.check(err)
	out := make(chan struct{}, 10000)
	go func() {
		seen := map[client.ObjectKey]int64{}
		for e := range watch.ResultChan() {
			w, ok := e.Object.(*workv1alpha1.Work)
			if !ok || w.DeletionTimestamp != nil {
				continue
			}
			if key := client.ObjectKeyFromObject(w); seen[key] != w.Generation {
				seen[key] = w.Generation
				out <- struct{}{}
			}
		}
	}()
	return out
}
