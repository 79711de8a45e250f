package reconciler_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/api/scheme"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// TestDefinitionsAreOfOneRevision has revisions follow each other that change a namespace and a kind together with the
// overrides for them, and bring another kind and an object of it, with loops that die after a random write: whatever a Work
// ever holds is what one revision wants there, and it is written once for each.
func TestDefinitionsAreOfOneRevision(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	s := newSwitches(t)
	defer func() { s.check(s.stop()) }()
	name := s.namespace + "-fresh"
	for _, cluster := range []string{from, to} {
		s.watchDefinitions(cluster, name)
	}

	want := map[string][]string{}
	for n := range 5 {
		switch {
		case n == 0:
			s.start(-1)
		case random.IntN(3) > 0:
			s.check(s.stop())
			s.start(random.IntN(12))
		}
		s.push(artifact.Files{"all.yaml": artifact.File{Data: []byte(definitions(name, n))}})
		held := fmt.Sprintf("r%d with r%[1]d", n)
		for _, cluster := range []string{from, to} {
			for _, kind := range []string{"CustomResourceDefinition", "Namespace"} {
				want[cluster+"/"+kind] = append(want[cluster+"/"+kind], held)
			}
		}
		s.stand("shop")
		s.eventually("the revision is everywhere", func() error {
			s.revive()
			seen := s.seen()
			for key := range want {
				if !slices.Contains(seen[key], held) {
					return fmt.Errorf("%s has held %q", key, seen[key])
				}
			}
			return nil
		})
		if t.Failed() {
			break
		}
	}
	if diff := cmp.Diff(want, s.seen()); diff != "" {
		t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
	}
}

// definitions are the manifests of a revision: a namespace, and a kind that goes to all members, each with an override; and a kind
// that the revision brings, with an object.
func definitions(name string, n int) string {
	kind := func(plural, labels string) string {
		return fmt.Sprintf(`---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s.example, labels: {%s}}
spec:
  group: %[2]s.example
  scope: Namespaced
  names: {plural: %[1]s, singular: %[1]sone, kind: Kind%[1]s, listKind: Kind%[1]sList}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`, plural, name, labels)
	}
	var extra strings.Builder
	for i := range n + 1 { // what is dropped would be held by the brake
		fmt.Fprintf(&extra, "---\napiVersion: %s.example/v1\nkind: Kindextra%d\nmetadata: {name: one, namespace: %[1]s}\n%[3]s", name, i, kind(fmt.Sprintf("extra%d", i), ""))
	}
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata: {name: %[1]s, labels: {tier: r%[2]d}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: %[1]s}
spec:
  resourceSelectors:
  - {apiVersion: v1, kind: Namespace, name: %[1]s}
  - {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: boats.%[1]s.example}
  overrideRules: [{overriders: {labelsOverrider: [{operator: add, value: {with: r%[2]d}}]}}]
---
apiVersion: policy.karmada.io/v1alpha1
kind: ClusterPropagationPolicy
metadata: {name: %[1]s}
spec:
  resourceSelectors: [{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: boats.%[1]s.example}]
  placement: {clusterAffinity: {clusterNames: [%[3]s, %[4]s]}}
`, name, n, from, to) + kind("boats", fmt.Sprintf("tier: r%d", n)) + extra.String()
}

// watchDefinitions notes what the Works of a namespace, and of a kind of the group that is named as it is, hold in a cluster.
func (s *switches) watchDefinitions(cluster, name string) {
	s.Helper()
	live, err := client.NewWithWatch(s.hub.Config, client.Options{Scheme: scheme.New()})
	s.check(err)
	events, err := live.Watch(s.Context(), &workv1alpha1.WorkList{}, client.InNamespace(workv1alpha2.ExecutionNamespace(cluster)))
	s.check(err)
	go func() {
		versions := map[string]int64{}
		for event := range events.ResultChan() {
			work, ok := event.Object.(*workv1alpha1.Work)
			if !ok || len(work.Spec.Workload.Manifests) == 0 {
				continue
			}
			var obj unstructured.Unstructured
			if json.Unmarshal(work.Spec.Workload.Manifests[0].Raw, &obj.Object) != nil || obj.GetName() != name && obj.GetName() != "boats."+name+".example" {
				continue
			}
			key := cluster + "/" + obj.GetKind()
			if work.Generation == versions[key] {
				continue
			}
			versions[key] = work.Generation
			s.mu.Lock()
			s.got[key] = append(s.got[key], obj.GetLabels()["tier"]+" with "+obj.GetLabels()["with"])
			s.mu.Unlock()
		}
	}()
}
