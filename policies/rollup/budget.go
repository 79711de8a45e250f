package rollup

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/bits"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// Bounds of a binding, in bytes as it is stored. etcd takes 1.5 MiB by default;
// half a MiB is left for what the next writer of the spec adds.
const (
	mostBinding = 1 << 20
	// surelyFits is how large all raw statuses may be together without the rest being measured, which takes time.
	surelyFits = 128 << 10
	// mostMessage bounds the messages of one cluster about applying and drift, and mostMessages all messages
	// together, for which each is shortened to leastMessage at worst.
	mostMessage  = 1 << 10
	mostMessages = 128 << 10
	leastMessage = 64
)

// fit shortens messages and leaves out raw statuses, the largest first, until b can be stored with the items. It
// returns the clusters whose statuses were left out, sorted. Sizes are rounded, so that a status that grows by a
// digit does not change places with another one and cause a write.
func fit(b workv1alpha2.Binding, items []workv1alpha2.AggregatedStatusItem) []string {
	shorten(items)
	sizes, all := make([]int, len(items)), 0
	for i := range items {
		if items[i].Status != nil {
			sizes[i] = stepped(Stored(items[i].Status.Raw))
			all += sizes[i]
		}
	}
	if all <= surelyFits {
		return nil
	}
	room := max(0, mostBinding-around(b, items))
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(sizes[b], sizes[a]) })
	var left []string
	for _, i := range order {
		if all <= room {
			break
		}
		if items[i].Status != nil {
			all -= sizes[i]
			items[i].Status = nil
			left = append(left, items[i].ClusterName)
		}
	}
	slices.Sort(left)
	return left
}

// shorten bounds the messages of items.
func shorten(items []workv1alpha2.AggregatedStatusItem) {
	saying := 0
	for i := range items {
		for _, text := range []string{items[i].AppliedMessage, items[i].Drift} {
			if text != "" {
				saying++
			}
		}
	}
	most := mostMessage
	for most > leastMessage && most*saying > mostMessages {
		most /= 2
	}
	for i := range items {
		items[i].AppliedMessage, items[i].Drift = excerpt.Message(items[i].AppliedMessage, most), excerpt.Message(items[i].Drift, most)
	}
}

// Stored returns how many bytes raw JSON takes in a stored object: the encoder
// escapes some characters as six bytes.
func Stored(raw []byte) int {
	n := len(raw)
	for _, escaped := range []string{"<", ">", "&"} {
		n += 5 * bytes.Count(raw, []byte(escaped))
	}
	return n + 3*(bytes.Count(raw, []byte("\u2028"))+bytes.Count(raw, []byte("\u2029")))
}

// stepped rounds a size up, by at most an eighth.
func stepped(n int) int {
	step := 1 << max(0, bits.Len(uint(n))-4)
	return (n + step - 1) / step * step
}

// around returns how many bytes b takes without raw statuses.
func around(b workv1alpha2.Binding, items []workv1alpha2.AggregatedStatusItem) int {
	const rest = 4 << 10 // names, ids, conditions
	bare := slices.Clone(items)
	for i := range bare {
		bare[i].Status = nil
	}
	n := rest
	for _, part := range []any{b.GetLabels(), b.GetAnnotations(), b.GetManagedFields(), b.BindingSpec(), bare} {
		n += sizeOf(part)
	}
	return n
}

// sizeOf returns how many bytes v takes as JSON.
func sizeOf(v any) int {
	data, err := json.Marshal(v)
	if err != nil {
		return mostBinding // what cannot be encoded cannot be stored
	}
	return len(data)
}

// truncated returns the condition that lists what was left out; false where nothing was.
func truncated(left []string, of int, shortened string) (metav1.Condition, bool) {
	c := metav1.Condition{Type: workv1alpha2.StatusTruncated, Status: metav1.ConditionTrue, Reason: workv1alpha2.StatusTooLargeReason}
	if len(left) > 0 {
		c.Message = fmt.Sprintf("the statuses of %d of %d clusters are too large to be kept here and are in their Works: %s", len(left), of, names(left))
	}
	if shortened != "" {
		if c.Message != "" {
			c.Message += "; "
		}
		c.Message += excerpt.Bytes(shortened, mostFault)
	}
	return c, c.Message != ""
}
