package build

import (
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kustomize/api/types"
)

// plain collects objects that kustomize would leave as they are. kustomize takes
// a time that grows with the square of their number to find that out, so such
// objects are not passed to it: most folders ask for no changes.
//
// Wherever it is not certain that nothing would change, or that kustomize would
// find no error, kustomize builds everything.
type plain struct {
	doubt   bool
	objects []*yaml.Node
	names   map[string]bool
	// namespace is what the outermost kustomization puts all objects into; empty: they stay where they are.
	entered   bool
	namespace string
}

// kustomization sets doubt if a kustomization has more than a list of resources; the first, which is the outermost one, may have a namespace.
func (p *plain) kustomization(k types.Kustomization) {
	if !p.entered {
		p.entered, p.namespace, k.Namespace = true, k.Namespace, ""
	}
	p.doubt = p.doubt || k.Kind != types.KustomizationKind
	k.TypeMeta, k.MetaData, k.Resources = types.TypeMeta{}, nil, nil
	p.doubt = p.doubt || !reflect.ValueOf(k).IsZero()
}

// object adds an object that is not part of a list, or sets doubt.
func (p *plain) object(d document) {
	// Only kustomize knows whether two objects of one name are the same.
	id := d.kind + " " + d.name
	if p.doubt = p.doubt || p.names[id] || fillsReferences[d.kind] || strings.HasSuffix(d.kind, "List") || p.namespace != "" && !slices.Contains(placeable[d.apiVersion], d.kind) || !simple(d); p.doubt {
		p.objects, p.names = nil, nil
		return
	}
	p.names[id] = true
	if p.namespace != "" {
		place(d.node, p.namespace)
	}
	p.objects = append(p.objects, d.node)
}

// placeable are the kinds, by API version, of objects that kustomize puts into a namespace without changing anything else.
var placeable = map[string][]string{
	"v1":      {"ConfigMap", "Secret", "Service", "ServiceAccount", "PersistentVolumeClaim"},
	"apps/v1": {"Deployment", "StatefulSet", "DaemonSet"}, "batch/v1": {"Job", "CronJob"},
	"autoscaling/v2": {"HorizontalPodAutoscaler"}, "policy/v1": {"PodDisruptionBudget"},
	"networking.k8s.io/v1": {"NetworkPolicy"}, "rbac.authorization.k8s.io/v1": {"Role"},
}

// place puts an object into a namespace.
func place(node *yaml.Node, namespace string) {
	metadata, value := child(node, "metadata"), yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: namespace}
	if was := child(metadata, "namespace"); was != nil {
		*was = value
		return
	}
	metadata.Content = append(metadata.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: "namespace"}, &value)
}

// fillsReferences are the kinds with references to which kustomize adds a
// namespace, if what they refer to is among the objects.
var fillsReferences = map[string]bool{
	"ClusterRoleBinding": true, "RoleBinding": true,
	"MutatingWebhookConfiguration": true, "ValidatingWebhookConfiguration": true,
	"Node": true, "StorageClass": true,
}

// simple reports whether an object has nothing that kustomize resolves, drops or
// refuses: aliases, null entries of lists, and labels or annotations that are
// empty, not strings, or kustomize's own.
func simple(d document) bool {
	metadata := child(d.node, "metadata")
	for _, field := range []string{"labels", "annotations"} {
		texts := child(metadata, field)
		if texts == nil {
			continue
		}
		if texts.Kind != yaml.MappingNode || len(texts.Content) == 0 {
			return false
		}
		for n, text := range texts.Content {
			if text.ShortTag() != "!!str" || (n%2 == 0 && strings.Contains(text.Value, "config.k")) {
				return false
			}
		}
	}
	for _, field := range []string{"name", "namespace"} {
		if text := child(metadata, field); text != nil && text.ShortTag() != "!!str" {
			return false
		}
	}
	return resolved(d.node)
}

func resolved(node *yaml.Node) bool {
	if node.Kind == yaml.AliasNode || node.Anchor != "" {
		return false
	}
	for _, sub := range node.Content {
		if !resolved(sub) || (node.Kind == yaml.SequenceNode && sub.ShortTag() == "!!null") || sub.ShortTag() == "!!merge" {
			return false
		}
	}
	return true
}
