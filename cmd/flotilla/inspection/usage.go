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

// Values of --sort-by.
const (
	sortCPU    = "cpu"
	sortMemory = "memory"
)

// resourceSwap is the name of swap memory in metrics.
const resourceSwap corev1.ResourceName = "swap"

// unknownUsage stands for what was not measured.
const unknownUsage = "<unknown>"

// usage is what a pod, a container or a node uses. With containers, pod is that of
// the container.
type usage struct {
	cluster, namespace, pod, name string

	used      corev1.ResourceList // nil when it was not measured
	available corev1.ResourceList // of a node; it has an entry for swap only if that is known
}

func (u *usage) add(more corev1.ResourceList) {
	for name, quantity := range more {
		sum := u.used[name]
		sum.Add(quantity)
		u.used[name] = sum
	}
}

// usageSheet is the output of top.
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
		sums := s.cells(total)
		_, _ = fmt.Fprintln(w, strings.Join(underlined(sums), "\t"))
		_, _ = fmt.Fprintln(w, strings.Join(sums, "\t"))
	}
	return w.Flush()
}

// underlined returns a row with a line for each cell that is not empty.
func underlined(cells []string) []string {
	out := make([]string, len(cells))
	for i, cell := range cells {
		if cell != "" {
			out[i] = "________"
		}
	}
	return out
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

// cells returns the cells of a row, one for each column.
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
			cell = mebibytes(u.used, corev1.ResourceMemory)
		case "SWAP(bytes)":
			cell = swap(u)
		case "CPU(%)":
			cell = share(u, corev1.ResourceCPU)
		case "MEMORY(%)":
			cell = share(u, corev1.ResourceMemory)
		case "SWAP(%)":
			cell = share(u, resourceSwap)
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

func mebibytes(used corev1.ResourceList, name corev1.ResourceName) string {
	if used == nil {
		return unknownUsage
	}
	const mebi = 1 << 20
	quantity := used[name]
	return fmt.Sprintf("%dMi", quantity.Value()/mebi)
}

// swap returns the used swap. It is unknown for a node that does not report its capacity, and none
// for a container without a value.
func swap(u usage) string {
	_, has := u.available[resourceSwap]
	_, measured := u.used[resourceSwap]
	if u.available != nil && (!has || !measured) {
		return unknownUsage
	}
	return mebibytes(u.used, resourceSwap)
}

// share returns the used part of what is available, in percent.
func share(u usage, name corev1.ResourceName) string {
	available, known := u.available[name]
	used, measured := u.used[name]
	switch {
	case !measured || !known:
		return unknownUsage
	case available.IsZero():
		return "0%"
	}
	return fmt.Sprintf("%d%%", int64(used.AsApproximateFloat64()/available.AsApproximateFloat64()*100))
}
