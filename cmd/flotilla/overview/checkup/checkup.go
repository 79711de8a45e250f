// Package checkup finds the causes, in clusters, for workloads that a status shows as not ready.
//
// In go problems; out come the same problems with the symptoms of Pods, or Warnings, and advice if they lack an object
// that the control plane has. It only reads, a few clusters and each once. Errors change nothing, except that a cluster
// that does not answer is noted.
package checkup

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/offspring"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/record"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation"
	"github.com/flotilla-io/flotilla/policies/symptom"
)

const (
	// Timeout is how long all clusters together may take: a status is useful without the
	// causes.
	Timeout = 3 * time.Second
	// mostAsked is how many clusters of one workload are read: more hardly show other causes.
	mostAsked = 3
)

// Examine adds the symptoms of their Pods to the workloads that a status shows as not ready. It
// reads each cluster once. Other errors leave a problem as it is, but a timeout is shown unless
// another cluster shows the cause: the status itself may not show it for half a minute.
func Examine(ctx context.Context, f *fleet.Flags, found *situation.Fleet) {
	shown := found.Problems[:min(len(found.Problems), situation.MostProblems)]
	asked := map[string][]int{} // by cluster, which problems
	for i, p := range shown {
		if p.Namespace == "" || !offspring.Has(p.Title()) {
			continue
		}
		for _, cluster := range p.Clusters[:min(len(p.Clusters), mostAsked)] {
			asked[cluster] = append(asked[cluster], i)
		}
	}
	var clusters []string
	for cluster := range asked {
		clusters = append(clusters, cluster)
	}
	slices.Sort(clusters)
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	answers := fleet.Each(ctx, clusters, func(ctx context.Context, cluster string) (map[int]string, error) {
		return symptoms(ctx, f, cluster, shown, asked[cluster])
	})
	for _, answer := range answers {
		for i, text := range answer.Value {
			if shown[i].Symptom != "" {
				continue // set by the first cluster with a cause
			}
			if len(shown[i].Clusters) > 1 {
				text = answer.Cluster + ": " + text
			}
			shown[i].Symptom = text
		}
	}
	for _, answer := range answers {
		for _, i := range asked[answer.Cluster] {
			if shown[i].Symptom == "" && errors.Is(answer.Err, context.DeadlineExceeded) {
				shown[i].Symptom = "cluster " + answer.Cluster + " did not answer just now"
				shown[i].Next = "see whether it is up: flotilla describe cluster " + answer.Cluster
			}
		}
	}
}

// symptoms returns the symptoms in one cluster, by the index of the problem.
func symptoms(ctx context.Context, f *fleet.Flags, cluster string, problems []situation.Problem, which []int) (map[int]string, error) {
	set, err := f.Server(cluster, Timeout).KubernetesClientSet()
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	spaces := map[string]*offspring.Namespace{}
	for _, i := range which {
		p := problems[i]
		if spaces[p.Namespace] == nil {
			spaces[p.Namespace] = offspring.In(set, p.Namespace)
		}
		s, err := Ask(ctx, spaces[p.Namespace], cluster, p.Kind, p.Name)
		if err != nil {
			continue // for example a namespace that the user may not read
		}
		if s.Text != "" {
			out[i] = s.Text
		}
	}
	return out, ctx.Err()
}

// Ask returns the symptom of a workload in one cluster: that of its Pods, or else the last Warning
// about what it owns, for example that a quota refuses its Pods. It returns zero if there is none.
func Ask(ctx context.Context, space *offspring.Namespace, cluster, kind, name string) (symptom.Symptom, error) {
	family, err := space.Of(ctx, kind, name)
	if err != nil {
		return symptom.Symptom{}, err
	}
	if s := symptom.Of(family.Pods); s != (symptom.Symptom{}) {
		return s, nil
	}
	warnings, err := space.Warnings(ctx)
	if apierrors.IsForbidden(err) {
		return symptom.Symptom{}, nil // its Pods show no symptom
	}
	if err != nil {
		return symptom.Symptom{}, err
	}
	var entries []record.Entry
	about := record.Filter{Types: []string{corev1.EventTypeWarning}, Objects: family.Names}
	for i := range warnings {
		if entry := record.Of(cluster, &warnings[i]); about.Has(entry) {
			entries = append(entries, entry)
		}
	}
	if len(entries) == 0 {
		return symptom.Symptom{}, nil
	}
	record.Sort(entries)
	last := entries[len(entries)-1]
	return symptom.FromEvent(last.Reason, last.Message), nil
}
