package inspection

import (
	"context"
	"maps"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newTopNodesCommand(f *fleet.Flags) *cobra.Command {
	t := &top{fleet: f}
	cmd := &cobra.Command{
		Use:     "nodes [NAME | -l LABEL]",
		Aliases: []string{"node", "no"},
		Short:   "Show how much CPU and memory nodes use",
		Example: `  flotilla top nodes -C eu-1 --sort-by cpu`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.sheet.columns = []string{"NAME", "CLUSTER", "CPU(cores)", "CPU(%)", "MEMORY(bytes)", "MEMORY(%)"}
			if t.swap {
				t.sheet.columns = append(t.sheet.columns, "SWAP(bytes)", "SWAP(%)")
			}
			t.allNamespaces = true
			return t.run(cmd, args, t.nodes)
		},
	}
	t.addFlags(cmd)
	cmd.Flags().BoolVar(&t.capacity, "show-capacity", false, "shares of what nodes have, in the place of what pods may use of it")
	cmd.ValidArgsFunction = completeNames(f, &t.scope, "nodes")
	return cmd
}

// nodes reads from a cluster what its nodes use.
func (t *top) nodes(ctx context.Context, cluster string) (usageOf, error) {
	client, core, err := t.connect(ctx, cluster)
	if err != nil {
		return usageOf{}, err
	}
	options := metav1.ListOptions{LabelSelector: t.selector}
	if t.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, t.name).String()
	}
	nodes, err := core.CoreV1().Nodes().List(ctx, options)
	if err != nil {
		return usageOf{}, err
	}
	if t.name != "" && len(nodes.Items) == 0 {
		return usageOf{absent: []error{apierrors.NewNotFound(corev1.Resource("nodes"), t.name)}}, nil
	}
	list, err := client.NodeMetricses().List(ctx, metav1.ListOptions{LabelSelector: t.selector})
	if err != nil {
		return usageOf{}, err
	}
	used := map[string]corev1.ResourceList{}
	for _, item := range list.Items {
		used[item.Name] = item.Usage
	}
	var answer usageOf
	for i := range nodes.Items {
		node := &nodes.Items[i]
		answer.rows = append(answer.rows, usage{cluster: cluster, name: node.Name, used: used[node.Name], available: t.available(node)})
	}
	return answer, nil
}

// available returns the resources of a node: its capacity, or what pods may use. Swap is in neither
// list, and is taken from the node's info.
func (t *top) available(node *corev1.Node) corev1.ResourceList {
	out := corev1.ResourceList{}
	if t.capacity {
		maps.Copy(out, node.Status.Capacity)
	} else {
		maps.Copy(out, node.Status.Allocatable)
	}
	if s := node.Status.NodeInfo.Swap; s != nil && s.Capacity != nil {
		out[resourceSwap] = *resource.NewQuantity(*s.Capacity, resource.BinarySI)
	}
	return out
}
