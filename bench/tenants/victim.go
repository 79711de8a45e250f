package tenants

import (
	"context"
	"fmt"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// timeout is how long a commit may take until it is applied.
const timeout = 2 * time.Minute

// Victim is the tenant whose commits are timed.
type Victim struct {
	*tenant
	// fetched and applied receive commits, one after the other.
	fetched, applied <-chan string
	commits          int // so far
}

// app is what the victim runs; only its setting changes.
const app = `apiVersion: v1
kind: ConfigMap
metadata: {name: settings}
data: {setting: "%d"}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx:1.29}]}
`

// NewVictim returns one whose first commit is applied. It watches until ctx ends.
func NewVictim(ctx context.Context, fleet Fleet) (*Victim, error) {
	const name = "victim"
	t, err := newTenant(ctx, fleet, name, map[string]string{"app/app.yaml": fmt.Sprintf(app, 0)})
	if err != nil {
		return nil, err
	}
	v := &Victim{tenant: t}
	if v.fetched, err = t.watch(ctx, &sourcev1.GitRepositoryList{}); err != nil {
		return nil, err
	}
	if v.applied, err = t.watch(ctx, &kustomizev1.KustomizationList{}); err != nil {
		return nil, err
	}
	if err := t.source(ctx, name, t.url, once); err != nil {
		return nil, err
	}
	if err := t.kustomization(ctx, name, "./app", once, func(spec *kustomizev1.KustomizationSpec) { spec.TargetNamespace = name }); err != nil {
		return nil, err
	}
	_, err = v.Commits(ctx, 3)
	return v, err
}

// watch reports each revision that sources have fetched, or of each that
// Kustomizations are ready at.
func (t *tenant) watch(ctx context.Context, list client.ObjectList) (<-chan string, error) {
	events, err := t.hub.Watch(ctx, list, client.InNamespace(t.name))
	if err != nil {
		return nil, fmt.Errorf("watch what %s has: %w", t.name, err)
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		last := ""
		for event := range events.ResultChan() {
			if revision := revisionOf(event.Object); revision != "" && revision != last {
				last = revision
				out <- last
			}
		}
	}()
	context.AfterFunc(ctx, events.Stop)
	return out, nil
}

// revisionOf is what a source has fetched, or what a Kustomization is ready at.
func revisionOf(obj runtime.Object) string {
	switch o := obj.(type) {
	case *sourcev1.GitRepository:
		if o.Status.Artifact != nil {
			return o.Status.Artifact.Revision
		}
	case *kustomizev1.Kustomization:
		if apimeta.IsStatusConditionTrue(o.Status.Conditions, meta.ReadyCondition) {
			return o.Status.LastAppliedRevision
		}
	}
	return ""
}

// Sample is how long a commit took, in milliseconds, from when the control plane was
// asked to fetch it.
type Sample struct {
	// Fetched is until its source showed it.
	Fetched float64 `json:"fetchedMilliseconds"`
	// Applied is until the Kustomization was ready at it.
	Applied float64 `json:"appliedMilliseconds"`
}

// Commits pushes so many changes, one after the other.
func (v *Victim) Commits(ctx context.Context, n int) ([]Sample, error) {
	samples := make([]Sample, 0, n)
	for range n {
		v.commits++
		commit, err := v.commit(ctx, map[string]string{"app/app.yaml": fmt.Sprintf(app, v.commits)})
		if err != nil {
			return nil, err
		}
		begin := time.Now()
		source := &sourcev1.GitRepository{ObjectMeta: metav1.ObjectMeta{Namespace: v.name, Name: v.name}}
		if err := v.touch(ctx, source); err != nil {
			return nil, err
		}
		var s Sample
		for _, wait := range []struct {
			on   <-chan string
			took *float64
		}{{v.fetched, &s.Fetched}, {v.applied, &s.Applied}} {
			if err := await(ctx, wait.on, commit); err != nil {
				return nil, err
			}
			*wait.took = float64(time.Since(begin).Microseconds()) / 1000
		}
		samples = append(samples, s)
	}
	return samples, nil
}

// await returns when a commit is reported.
func await(ctx context.Context, reported <-chan string, commit string) error {
	late := time.After(timeout)
	for {
		select {
		case revision, watching := <-reported:
			if !watching {
				return fmt.Errorf("the watch for the commit %s has ended", commit)
			}
			if strings.HasSuffix(revision, commit) {
				return nil
			}
		case <-late:
			return fmt.Errorf("the commit %s is not applied after %s", commit, timeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Applied returns how long commits took until they were applied, in milliseconds.
func Applied(samples []Sample) []float64 {
	out := make([]float64, 0, len(samples))
	for _, s := range samples {
		out = append(out, s.Applied)
	}
	return out
}
