// Package running says which kinds run Pods.
//
// In goes a kind; out comes a Class. It is decided by what comes with Flotilla: whoever sees what an object is in
// clusters knows more of a kind of which nothing is known here.
package running

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// Class is what is known of a kind. Classes are ordered by how much is lost with the last object of it.
type Class int

const (
	// Passive runs nothing by itself: it is read, selects, permits, or says where others run.
	Passive Class = iota
	// Foreign is of others, and nothing is known of it: where it is carried to clusters, it may be what runs there.
	Foreign
	// Runs is what runs Pods, or has others run them.
	Runs
)

// Of returns the class of a kind.
func Of(kind schema.GroupKind) Class {
	switch kind.Group {
	case "":
		return runsIf(kind.Kind == "Pod" || kind.Kind == "ReplicationController")
	case "apps":
		return runsIf(kind.Kind != "ControllerRevision")
	case "batch":
		return Runs
	}
	class, known := bundled()[kind]
	switch {
	case known:
		return class
	case own(kind.Group):
		return Passive
	default:
		return Foreign
	}
}

func runsIf(runs bool) Class {
	if runs {
		return Runs
	}
	return Passive
}

// own reports whether a group is Kubernetes' own, or one of those by which the control plane works.
func own(group string) bool {
	return !strings.Contains(group, ".") || slices.ContainsFunc([]string{"k8s.io", "karmada.io", "flotilla.io", "toolkit.fluxcd.io"}, func(domain string) bool {
		return group == domain || strings.HasSuffix(group, "."+domain)
	})
}

// unsized run Pods, and their rules have nothing to divide.
var unsized = []schema.GroupKind{
	{Group: "apps.kruise.io", Kind: "AdvancedCronJob"},
	{Group: "apps.kruise.io", Kind: "DaemonSet"},
	{Group: "keda.sh", Kind: "ScaledJob"},
	{Group: "kafka.strimzi.io", Kind: "Kafka"},
	{Group: "monitoring.coreos.com", Kind: "Alertmanager"},
	{Group: "monitoring.coreos.com", Kind: "Prometheus"},
	{Group: "monitoring.coreos.com", Kind: "PrometheusAgent"},
	{Group: "monitoring.coreos.com", Kind: "ThanosRuler"},
	{Group: "postgresql.cnpg.io", Kind: "Cluster"},
	{Group: "serving.knative.dev", Kind: "Service"},
}

// installs others: of what that is nothing is known.
var installs = []schema.GroupKind{
	{Group: "argoproj.io", Kind: "Application"},
	{Group: "argoproj.io", Kind: "ApplicationSet"},
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"},
}

// sidecars run in the Pods of others.
var sidecars = schema.GroupKind{Group: "apps.kruise.io", Kind: "SidecarSet"}

var bundled = sync.OnceValue(func() map[schema.GroupKind]Class {
	out := map[schema.GroupKind]Class{}
	for gvk, rules := range customizations.Table() {
		kind := gvk.GroupKind()
		switch {
		case slices.Contains(installs, kind):
			out[kind] = Foreign
		case slices.Contains(unsized, kind):
			out[kind] = Runs
		default:
			out[kind] = max(out[kind], runsIf(kind != sidecars && (rules.Replicas != nil || rules.Components != nil)))
		}
	}
	return out
})
