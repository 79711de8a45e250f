// Package running decides which kinds run Pods.
//
// In goes a kind; out comes its Class. It follows from the rules that are part of
// Flotilla: whoever sees what a cluster makes of an object knows more about kinds
// that have no rules here.
package running

import (
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations"
)

// Class is what is known about a kind. Classes are ordered by how much is lost
// with the last object of the kind.
type Class int

const (
	// Passive kinds run nothing by themselves: their objects are read, or select,
	// permit or describe others.
	Passive Class = iota
	// Foreign kinds belong to other projects, and nothing is known about them:
	// where their objects are carried to clusters, they may be what runs Pods
	// there.
	Foreign
	// Runs is the class of kinds that run Pods, or have others run them.
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

// own reports whether a group is one of Kubernetes' own, or of the APIs of the
// control plane.
func own(group string) bool {
	return !strings.Contains(group, ".") || slices.ContainsFunc([]string{"k8s.io", "karmada.io", "flotilla.io", "toolkit.fluxcd.io"}, func(domain string) bool {
		return group == domain || strings.HasSuffix(group, "."+domain)
	})
}

// unsized are kinds that run Pods and whose rules have neither replicas nor
// components.
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

// installs are kinds that install other objects, about which nothing is known.
var installs = []schema.GroupKind{
	{Group: "argoproj.io", Kind: "Application"},
	{Group: "argoproj.io", Kind: "ApplicationSet"},
	{Group: "helm.toolkit.fluxcd.io", Kind: "HelmRelease"},
}

// sidecars is a kind whose containers run in the Pods of others.
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
