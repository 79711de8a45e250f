package failover

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/placement"
	"github.com/flotilla-io/flotilla/policies/plan/comparison"
)

// foreseen has lonely, which runs in west alone, and shared, which is divided among all clusters by their room; settings are everywhere.
const foreseen = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: lonely, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: lonely}]
  placement: {clusterAffinity: {clusterNames: [west]}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: shared, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: apps/v1, kind: Deployment, name: shared}]
  placement:
    replicaScheduling: {replicaSchedulingType: Divided, replicaDivisionPreference: Weighted, weightPreference: {dynamicWeight: AvailableReplicas}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: shop}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement: {}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {color: blue}
---
` + foreseenLonely + "---\n" + foreseenShared

const foreseenLonely = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: lonely, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: lonely}}
  template:
    metadata: {labels: {app: lonely}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

const foreseenShared = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shared, namespace: shop}
spec:
  replicas: 6
  selector: {matchLabels: {app: shared}}
  template:
    metadata: {labels: {app: shared}}
    spec: {containers: [{name: web, image: "nginx:1.29"}]}
`

// foreseenKinds are what is placed, by the names of the objects.
var foreseenKinds = map[string]string{"lonely": "Deployment", "shared": "Deployment", "settings": "ConfigMap"}

// stand returns where each object is placed, with its replicas.
func (w world) stand(ctx context.Context) (map[string]map[string]int32, error) {
	out := map[string]map[string]int32{}
	for name, kind := range foreseenKinds {
		b := &workv1alpha2.ResourceBinding{}
		if err := w.Client.Get(ctx, types.NamespacedName{Namespace: "shop", Name: workv1alpha2.BindingName(kind, name)}, b); err != nil {
			return nil, err
		}
		if _, recorded := placement.RecordOf(b); !recorded || len(b.Spec.Clusters) == 0 {
			return nil, fmt.Errorf("%s is not placed yet", name)
		}
		out[name] = map[string]int32{}
		for _, target := range b.Spec.Clusters {
			out[name][target.Name] = target.Replicas
		}
	}
	return out, nil
}

// foresee returns where everything will be placed by a plan, and its risks.
func (w world) foresee(event string) (map[string]map[string]int32, []comparison.Risk) {
	w.Helper()
	promised, err := w.stand(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	var c comparison.Comparison
	if err := json.Unmarshal([]byte(w.Flotilla(w.T, "plan", "--what-if", event, "-o", "json")), &c); err != nil {
		w.Fatal(err)
	}
	if diff := cmp.Diff([]string{event}, c.WhatIf); diff != "" {
		w.Errorf("whatIf (-want +got):\n%s", diff)
	}
	for _, p := range c.Placements {
		for _, s := range p.Shifts {
			if delete(promised[p.Name], s.Cluster); s.After != nil {
				promised[p.Name][s.Cluster] = *s.After
			}
		}
	}
	return promised, c.Risks
}

// joins starts one more member, and has it join.
func (w world) joins(name string) {
	w.Helper()
	member, err := w.NewMember(name)
	if err == nil {
		err = member.Start()
	}
	if err != nil {
		w.Fatal(err)
	}
	w.Members[name] = member // which is stopped with the others
	if err := errors.Join(member.Ready(w.Context()), w.Join(w.Context(), name)); err != nil {
		w.Fatal(err)
	}
}

// becomes waits until everything is placed as promised.
func (w world) becomes(promised map[string]map[string]int32) {
	w.Helper()
	w.eventually("what was promised comes", func(ctx context.Context) error {
		got, err := w.stand(ctx)
		if diff := cmp.Diff(promised, got); err == nil && diff != "" {
			err = errors.New("(-promised +came):\n" + diff)
		}
		return err
	})
}

// TestWhatIfComesTrue: what a plan promises of a cluster that joins, and of one that is lost, is what comes once that happens.
func TestWhatIfComesTrue(t *testing.T) {
	w := newWorld(t)
	w.Apply(t, foreseen)
	w.eventually("everything is placed", func(ctx context.Context) error {
		got, err := w.stand(ctx)
		if err == nil && (len(got["settings"]) != 3 || len(got["shared"]) != 3) {
			err = fmt.Errorf("it is placed in %v", got)
		}
		return err
	})

	file := filepath.Join(t.TempDir(), "south.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: cluster.karmada.io/v1alpha1\nkind: Cluster\nmetadata: {name: south}\nspec: {syncMode: Push}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	promised, _ := w.foresee("add:" + file)
	if _, has := promised["settings"]["south"]; !has {
		t.Errorf("nothing is promised to the cluster that joins: %v", promised)
	}
	w.joins("south")
	w.becomes(promised)

	promised, risks := w.foresee("west:down")
	stays := slices.ContainsFunc(risks, func(r comparison.Risk) bool {
		return r.Reason == comparison.RiskNotPlaced && r.Object != nil && r.Object.Name == "lonely"
	})
	if _, has := promised["lonely"]["west"]; !stays || !has {
		t.Errorf("what has no other place does not stay: %v, %v", promised, risks)
	}
	if _, has := promised["settings"]["west"]; has || strings.Contains(fmt.Sprint(promised["shared"]), "west") {
		t.Errorf("what has another place does not go there: %v", promised)
	}
	if err := w.Members["west"].Kill(); err != nil {
		t.Fatal(err)
	}
	w.becomes(promised)
}
