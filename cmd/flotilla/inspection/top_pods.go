package inspection

import (
	"context"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

func newTopPodsCommand(f *fleet.Flags) *cobra.Command {
	t := &top{fleet: f}
	cmd := &cobra.Command{
		Use:     "pods [NAME | -l LABEL]",
		Aliases: []string{"pod", "po"},
		Short:   "Show how much CPU and memory pods use",
		Example: `  flotilla top pods -A --sum
  flotilla top pods -n shop -C eu-1,eu-2 --containers --sort-by memory`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t.sheet.columns = []string{"NAME", "CLUSTER", "CPU(cores)", "MEMORY(bytes)"}
			if t.containers {
				t.sheet.columns = append([]string{"POD"}, t.sheet.columns...)
			}
			if t.allNamespaces {
				t.sheet.columns = append([]string{"NAMESPACE"}, t.sheet.columns...)
			}
			if t.swap {
				t.sheet.columns = append(t.sheet.columns, "SWAP(bytes)")
			}
			return t.run(cmd, args, t.pods)
		},
	}
	t.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&t.fields, "field-selector", "", "fields that pods must have, such as metadata.name=web-1; = == and != are known")
	flags.BoolVar(&t.containers, "containers", false, "a row for each container")
	flags.BoolVarP(&t.allNamespaces, "all-namespaces", "A", false, "in all namespaces")
	flags.BoolVar(&t.sheet.sum, "sum", false, "add up what is shown")
	cmd.ValidArgsFunction = completeNames(f, &t.scope, "pods")
	return cmd
}

// pods reads from a cluster what its pods use.
func (t *top) pods(ctx context.Context, cluster string) (usageOf, error) {
	client, _, err := t.connect(ctx, cluster)
	if err != nil {
		return usageOf{}, err
	}
	namespace := t.namespace
	if t.allNamespaces {
		namespace = metav1.NamespaceAll
	}
	list := &metricsv1beta1.PodMetricsList{}
	if t.name == "" {
		list, err = client.PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: t.selector, FieldSelector: t.fields})
	} else {
		var one *metricsv1beta1.PodMetrics
		if one, err = client.PodMetricses(t.namespace).Get(ctx, t.name, metav1.GetOptions{}); err == nil {
			list.Items = append(list.Items, *one)
		}
	}
	if isAbsent(err) {
		return usageOf{absent: []error{err}}, nil
	}
	if err != nil {
		return usageOf{}, err
	}
	var answer usageOf
	for i := range list.Items {
		answer.rows = append(answer.rows, t.usageOfPod(cluster, &list.Items[i])...)
	}
	return answer, nil
}

func (t *top) usageOfPod(cluster string, pod *metricsv1beta1.PodMetrics) []usage {
	whole := usage{cluster: cluster, namespace: pod.Namespace, name: pod.Name, used: corev1.ResourceList{}}
	var parts []usage
	for _, container := range pod.Containers {
		parts = append(parts, usage{cluster: cluster, namespace: pod.Namespace, pod: pod.Name, name: container.Name, used: container.Usage})
		whole.add(container.Usage)
	}
	if t.containers {
		return parts
	}
	return []usage{whole}
}
