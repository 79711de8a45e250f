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
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patience is how long a commit may take until it is applied.
const patience = 2 * time.Minute

// Victim is the tenant whose commits are timed.
type Victim struct {
	*tenant
	applied <-chan string // commits that are applied, one after the other
	commits int           // so far
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
	if v.applied, err = t.watch(ctx); err != nil {
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

// watch tells of each commit that the tenant's Kustomizations are ready at.
func (t *tenant) watch(ctx context.Context) (<-chan string, error) {
	events, err := t.fleet.Hub.Watch(ctx, &kustomizev1.KustomizationList{}, client.InNamespace(t.name))
	if err != nil {
		return nil, fmt.Errorf("watch the Kustomizations of %s: %w", t.name, err)
	}
	out := make(chan string, 1000)
	go func() {
		defer close(out)
		last := ""
		for event := range events.ResultChan() {
			ks, ok := event.Object.(*kustomizev1.Kustomization)
			if ok && ks.Status.LastAppliedRevision != last && apimeta.IsStatusConditionTrue(ks.Status.Conditions, meta.ReadyCondition) {
				last = ks.Status.LastAppliedRevision
				out <- last
			}
		}
	}()
	context.AfterFunc(ctx, events.Stop)
	return out, nil
}

// Commits pushes so many changes, one after the other, and returns for each how many
// milliseconds it took from when the control plane was asked to fetch it until the
// Kustomization was ready at it.
func (v *Victim) Commits(ctx context.Context, n int) ([]float64, error) {
	samples := make([]float64, 0, n)
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
		if err := v.await(ctx, commit); err != nil {
			return nil, err
		}
		samples = append(samples, float64(time.Since(begin).Microseconds())/1000)
	}
	return samples, nil
}

// await returns when a commit is applied.
func (v *Victim) await(ctx context.Context, commit string) error {
	late := time.After(patience)
	for {
		select {
		case revision, watching := <-v.applied:
			if !watching {
				return fmt.Errorf("the watch for the commit %s has ended", commit)
			}
			if strings.HasSuffix(revision, commit) {
				return nil
			}
		case <-late:
			return fmt.Errorf("the commit %s is not applied after %s", commit, patience)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
