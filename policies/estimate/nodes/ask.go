package nodes

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/estimate"
	"github.com/flotilla-io/flotilla/policies/failover"
)

// Ask is what one unit of a workload needs, one replica or one set of components, and
// what is to run in the cluster besides. Use AskForReplicas or AskForSets.
type Ask struct {
	// Namespace of the workload; empty: not known, and no quota is about it.
	Namespace string
	// Parts are equal pods each.
	Parts []Part
	// Assumed are pods that are to run there besides.
	Assumed []Assumed
}

// Assumed is a part of another workload.
type Assumed struct {
	Namespace string
	Part
}

// Part is so many equal pods.
type Part struct {
	Pods int64
	// Class is the name of their priority class; empty: none.
	Class string
	// Requests of one pod, without the pod itself.
	Requests Amounts

	// nodeClaimKey is the same for all that may run on the same nodes.
	nodeClaimKey string
	selector     map[string]string
	terms        []corev1.NodeSelectorTerm
	affinity     *nodeaffinity.NodeSelector // nil: any node
	tolerations  []corev1.Toleration
}

// AskForReplicas asks how many replicas fit that need as much. It errs on a node
// affinity that makes no sense.
func AskForReplicas(need *workv1alpha2.ReplicaRequirements, assumed []estimate.Assumed) (*Ask, error) {
	namespace := ""
	if need != nil {
		namespace = need.Namespace
	}
	return AskForSets(namespace, []workv1alpha2.Component{estimate.ComponentOf(need)}, assumed)
}

// AskForSets asks how many sets of the components fit. It errs on a node affinity that
// makes no sense.
func AskForSets(namespace string, components []workv1alpha2.Component, assumed []estimate.Assumed) (*Ask, error) {
	parts, err := partsOf(components)
	if err != nil {
		return nil, err
	}
	out := &Ask{Namespace: namespace, Parts: parts}
	for i := range assumed {
		parts, err := partsOf(assumed[i].Components)
		if err != nil {
			return nil, fmt.Errorf("what is assumed to run: %w", err)
		}
		for _, p := range parts {
			out.Assumed = append(out.Assumed, Assumed{assumed[i].Namespace, p})
		}
	}
	return out, nil
}

func partsOf(components []workv1alpha2.Component) ([]Part, error) {
	out := make([]Part, 0, len(components))
	for i := range components {
		c := &components[i]
		if c.Replicas <= 0 {
			continue
		}
		p := Part{Pods: int64(c.Replicas)}
		if need := c.ReplicaRequirements; need != nil {
			p.Class, p.Requests = need.PriorityClassName, AmountsOf(need.ResourceRequest)
			if err := p.nodeClaim(need.NodeClaim); err != nil {
				return nil, err
			}
		}
		out = append(out, p)
	}
	return out, nil
}

func (p *Part) nodeClaim(c *workv1alpha2.NodeClaim) error {
	if c == nil {
		return nil
	}
	p.selector, p.tolerations = c.NodeSelector, c.Tolerations
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("read the node claim: %w", err)
	}
	p.nodeClaimKey = string(text)
	if c.HardNodeAffinity == nil {
		return nil
	}
	affinity, err := nodeaffinity.NewNodeSelector(c.HardNodeAffinity)
	if err != nil {
		return fmt.Errorf("read the node affinity: %w", err)
	}
	p.affinity, p.terms = affinity, c.HardNodeAffinity.NodeSelectorTerms
	return nil
}

// Chooses returns the keys of labels by which its pods, and those that are assumed, choose
// nodes; named says that some choose nodes by name.
func (a *Ask) Chooses() (keys []string, named bool) {
	add := func(p *Part) {
		keys = slices.AppendSeq(keys, maps.Keys(p.selector))
		for i := range p.terms {
			named = named || len(p.terms[i].MatchFields) > 0
			for j := range p.terms[i].MatchExpressions {
				keys = append(keys, p.terms[i].MatchExpressions[j].Key)
			}
		}
	}
	for i := range a.Parts {
		add(&a.Parts[i])
	}
	for i := range a.Assumed {
		add(&a.Assumed[i].Part)
	}
	slices.Sort(keys)
	return slices.Compact(keys), named
}

// tolerates reports whether pods of the part may run in spite of all taints.
func (p *Part) tolerates(taints []corev1.Taint) bool {
	for i := range taints {
		if !failover.Tolerates(&taints[i], p.tolerations) {
			return false
		}
	}
	return true
}

// means reports whether the part's pods want such a node. Scratch is used again for each.
func (p *Part) means(n *Node, scratch *corev1.Node) bool {
	for key, value := range p.selector {
		if is, ok := n.Labels[key]; !ok || is != value {
			return false
		}
	}
	if p.affinity == nil {
		return true
	}
	scratch.ObjectMeta = metav1.ObjectMeta{Name: n.Name, Labels: n.Labels}
	return p.affinity.Match(scratch)
}
