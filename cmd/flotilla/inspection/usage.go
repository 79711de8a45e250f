package inspection

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/printers"
)

// What top may be sorted by.
const (
	sortCPU    = "cpu"
	sortMemory = "memory"
)

// unknownUsage stands for what was not measured.
const unknownUsage = "<unknown>"

// usage is what a pod, a container or a node uses. With containers, pod is that of
// the container.
type usage struct {
	cluster, namespace, pod, name string

	used      corev1.ResourceList // nil when it was not measured
	available corev1.ResourceList
}

func (u *usage) add(more corev1.ResourceList) {
	for name, quantity := range more {
		sum := u.used[name]
		sum.Add(quantity)
		u.used[name] = sum
	}
}

// usageSheet is what top prints.
type usageSheet struct {
	columns   []string
	rows      []usage
	sum       bool
	sortBy    string
	noHeaders bool
}

func (s *usageSheet) check() error {
	if s.sortBy != "" && s.sortBy != sortCPU && s.sortBy != sortMemory {
		return fmt.Errorf("there is no --sort-by %q: it is cpu or memory", s.sortBy)
	}
	return nil
}

func (s *usageSheet) print(out io.Writer) error {
	if len(s.rows) == 0 {
		return nil
	}
	s.sort()
	w := printers.GetNewTabWriter(out)
	if !s.noHeaders {
		_, _ = fmt.Fprintln(w, strings.Join(s.columns, "\t"))
	}
	total := usage{used: corev1.ResourceList{}}
	for _, row := range s.rows {
		_, _ = fmt.Fprintln(w, strings.Join(s.cells(row), "\t"))
		total.add(row.used)
	}
	if s.sum {
		blank := strings.Repeat("\t", len(s.columns)-2)
		_, _ = fmt.Fprintf(w, "%s________\t________\n", blank)
		_, _ = fmt.Fprintf(w, "%s%s\t%s\n", blank, cpu(total.used), memory(total.used))
	}
	return w.Flush()
}

func (s *usageSheet) sort() {
	slices.SortFunc(s.rows, func(a, b usage) int {
		most := 0
		switch s.sortBy {
		case sortCPU:
			most = b.used.Cpu().Cmp(*a.used.Cpu())
		case sortMemory:
			most = b.used.Memory().Cmp(*a.used.Memory())
		}
		return cmp.Or(most, cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.pod, b.pod), cmp.Compare(a.name, b.name), cmp.Compare(a.cluster, b.cluster))
	})
}

// cells are those of the columns.
func (s *usageSheet) cells(u usage) []string {
	var cells []string
	for _, column := range s.columns {
		cell := ""
		switch column {
		case "NAMESPACE":
			cell = u.namespace
		case "POD":
			cell = u.pod
		case "NAME":
			cell = u.name
		case "CLUSTER":
			cell = u.cluster
		case "CPU(cores)":
			cell = cpu(u.used)
		case "MEMORY(bytes)":
			cell = memory(u.used)
		case "CPU(%)":
			cell = share(u, corev1.ResourceCPU)
		case "MEMORY(%)":
			cell = share(u, corev1.ResourceMemory)
		}
		cells = append(cells, cell)
	}
	return cells
}

func cpu(used corev1.ResourceList) string {
	if used == nil {
		return unknownUsage
	}
	return fmt.Sprintf("%dm", used.Cpu().MilliValue())
}

func memory(used corev1.ResourceList) string {
	if used == nil {
		return unknownUsage
	}
	const mebi = 1 << 20
	return fmt.Sprintf("%dMi", used.Memory().Value()/mebi)
}

// share is what part of what is available is used.
func share(u usage, name corev1.ResourceName) string {
	available := u.available[name]
	used, measured := u.used[name]
	if !measured || available.IsZero() {
		return unknownUsage
	}
	return fmt.Sprintf("%d%%", int64(used.AsApproximateFloat64()/available.AsApproximateFloat64()*100))
}
