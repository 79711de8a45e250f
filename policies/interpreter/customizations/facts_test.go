package customizations_test

import (
	"fmt"
	"testing"

	"github.com/flotilla-io/flotilla/internal/rulestest"
	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// The tables of these tests have a row for each behaviour of a kind's rules that
// the examples do not show.

// TestStandingInNoCluster checks that a template in no cluster, such as a divided
// workload with zero replicas, is observed at once.
func TestStandingInNoCluster(t *testing.T) {
	const seen = `{observedGeneration: 2}`
	rulestest.CheckSums(t, customizations.Table(), map[string]rulestest.Sum{
		"CloneSet":         {Kind: "apps.kruise.io/v1alpha1 CloneSet", Want: `{observedGeneration: 2, replicas: 0, readyReplicas: 0}`},
		"StatefulSet":      {Kind: "apps.kruise.io/v1beta1 StatefulSet", Want: seen},
		"DaemonSet":        {Kind: "apps.kruise.io/v1alpha1 DaemonSet", Want: seen},
		"UnitedDeployment": {Kind: "apps.kruise.io/v1alpha1 UnitedDeployment", Want: seen},
		"SidecarSet":       {Kind: "apps.kruise.io/v1alpha1 SidecarSet", Want: seen},
		"Rollout, as text": {Kind: "argoproj.io/v1alpha1 Rollout", Want: `{observedGeneration: "2"}`},
		"HelmRelease":      {Kind: "helm.toolkit.fluxcd.io/v2 HelmRelease", Want: seen},
		"Kustomization":    {Kind: "kustomize.toolkit.fluxcd.io/v1 Kustomization", Want: seen},
		"a source of Flux": {Kind: "source.toolkit.fluxcd.io/v1 Bucket", Want: seen},
		"RayCluster":       {Kind: "ray.io/v1 RayCluster", Want: seen},
		"a cluster that says nothing is one all the same": {Kind: "apps.kruise.io/v1alpha1 CloneSet", Statuses: []string{"-"}, Want: `{observedGeneration: 1}`},
	})
}

// TestOneCluster checks that what an only cluster reports is taken as it is.
func TestOneCluster(t *testing.T) {
	rulestest.CheckSums(t, customizations.Table(), map[string]rulestest.Sum{
		"a phase of a newer operator stays": {
			Kind: "batch.volcano.sh/v1alpha1 Job", Statuses: []string{`{state: {phase: Hibernating, message: sleeps}}`},
			Want: `{state: {phase: Hibernating, message: sleeps}}`,
		},
		"a state of a newer operator stays": {
			Kind: "ray.io/v1 RayCluster", Statuses: []string{`{state: hibernating}`}, Want: `{state: hibernating}`,
		},
		"messages of conditions name no cluster": {
			Kind:     "kubeflow.org/v2beta1 MPIJob",
			Statuses: []string{`{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: it failed, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`},
			Want:     `{conditions: [{type: Failed, status: "True", reason: BackoffLimitExceeded, message: it failed, lastTransitionTime: "2026-01-01T00:00:00Z"}]}`,
		},
		"nor do other messages": {
			Kind: "argoproj.io/v1alpha1 Workflow", Statuses: []string{`{phase: Failed, message: child failed}`},
			Want: `{phase: Failed, message: child failed}`,
		},
	})
}

// TestWordsNobodyKnows checks that words that are not known, as those of newer
// operators, rank between the bad and the good ones.
func TestWordsNobodyKnows(t *testing.T) {
	rulestest.CheckSums(t, customizations.Table(), map[string]rulestest.Sum{
		"beside a good one": {
			Kind: "argoproj.io/v1alpha1 Workflow", Statuses: []string{`{phase: Succeeded}`, `{phase: Dreaming}`, `{phase: Napping}`}, Want: `{phase: Dreaming}`,
		},
		"beside a bad one": {
			Kind: "argoproj.io/v1alpha1 Workflow", Statuses: []string{`{phase: Failed}`, `{phase: Dreaming}`}, Want: `{phase: Failed}`,
		},
		"in a field that comes from one cluster": {
			Kind:     "sparkoperator.k8s.io/v1beta2 SparkApplication",
			Statuses: []string{`{applicationState: {state: COMPLETED}}`, `{applicationState: {state: DREAMING}}`}, Want: `{applicationState: {state: DREAMING}}`,
		},
		"one that is no word has no say": {
			Kind: "argoproj.io/v1alpha1 Workflow", Statuses: []string{`{phase: Running}`, `{phase: ` + fmt.Sprintf("%0200d", 1) + `x}`}, Want: `{phase: Running}`,
		},
	})
}

// TestWhoLacksAField checks that a cluster whose status lacks a field does not
// count for it, and that a field goes where two values differ.
func TestWhoLacksAField(t *testing.T) {
	rulestest.CheckSums(t, customizations.Table(), map[string]rulestest.Sum{
		"AdvancedCronJob": {
			Kind: "apps.kruise.io/v1alpha1 AdvancedCronJob", Statuses: []string{`{type: Job}`, `{lastScheduleTime: "2026-01-01T00:00:00Z"}`}, Want: `{type: Job}`,
		},
		"DaemonSet": {
			Kind: "apps.kruise.io/v1alpha1 DaemonSet", Statuses: []string{`{numberReady: 1}`, `{daemonSetHash: abc}`, `{daemonSetHash: ""}`}, Want: `{daemonSetHash: abc}`,
		},
		"revisions and selectors": {
			Kind: "apps.kruise.io/v1alpha1 CloneSet", Statuses: []string{`{updateRevision: r1, labelSelector: a=b}`, `{replicas: 1}`},
			Want: `{updateRevision: r1, labelSelector: a=b}`,
		},
		"two values remove it": {
			Kind: "apps.kruise.io/v1alpha1 CloneSet", Statuses: []string{`{updateRevision: r1, labelSelector: a=b}`, `{}`, `{updateRevision: r2, labelSelector: a=b}`},
			Want: `{updateRevision: null, labelSelector: a=b}`,
		},
	})
}
