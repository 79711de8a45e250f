package replicas

import (
	"container/heap"
	"hash/fnv"
	"math/bits"
	"strings"
)

// Share is one party of a division.
type Share struct {
	// Name of the cluster.
	Name string
	// Weight of its share. Zero or less gets nothing.
	Weight int64
	// Count is what the division gave it.
	Count int32
}

// Order says which of two clusters with an equal weight is served first.
type Order bool

const (
	// Ascending serves the name that sorts first.
	Ascending Order = false
	// Descending serves the name that sorts last.
	Descending Order = true
)

// OrderOf returns the order for a resource, so that remainders of many
// resources do not all fall to the same cluster: descending where the FNV-32a
// hash of its UID is odd.
func OrderOf(uid string) Order {
	if uid == "" {
		return Ascending
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(uid)) // a hash never fails
	return Order(h.Sum32()%2 == 1)
}

// Webster divides total among the shares by Webster's method: one at a time,
// to the highest weight/(2*count+1); among equals to the lower count, then by
// order. It sets Count of every share and reports whether there was anyone to
// give to; with a total of zero or less everyone has zero.
func Webster(total int32, shares []Share, order Order) bool {
	q := queue{descending: bool(order)}
	for i := range shares {
		shares[i].Count = 0
		if shares[i].Weight > 0 {
			q.shares = append(q.shares, &shares[i])
		}
	}
	if total <= 0 || len(q.shares) == 0 {
		return len(q.shares) > 0
	}
	shift := scale(q.shares)
	total -= bulk(total, q.shares, shift)
	q.shift = shift
	heap.Init(&q)
	for range total {
		q.shares[0].Count++
		heap.Fix(&q, 0)
	}
	return true
}

// maxWeight keeps every product below within 128 bits.
const maxWeight = 1 << 40

// scale returns by how many bits weights are shifted so that none exceeds
// maxWeight.
func scale(shares []*Share) int {
	top := int64(0)
	for _, s := range shares {
		top = max(top, s.Weight)
	}
	return max(bits.Len64(uint64(top))-bits.Len64(maxWeight-1), 0)
}

func scaled(weight int64, shift int) uint64 { return max(uint64(weight)>>shift, 1) }

// bulk gives every share what it gets for certain and returns the sum. The
// seats whose quotient exceeds any fixed limit are the first ones to be given,
// so all of them belong to the result as long as they are not too many; the
// limit sum/(2*(total-n/2)) leaves no more than that.
func bulk(total int32, shares []*Share, shift int) int32 {
	n := int32(len(shares))
	safe := total - (n+1)/2
	if safe <= 0 {
		return 0
	}
	var sum uint64
	for _, s := range shares {
		sum += scaled(s.Weight, shift)
	}
	var given int32
	for _, s := range shares {
		hi, lo := bits.Mul64(scaled(s.Weight, shift), 2*uint64(safe))
		quotient, rest := bits.Div64(hi, lo, sum)
		if rest > 0 {
			quotient++
		}
		s.Count = int32(quotient / 2)
		given += s.Count
	}
	return given
}

// queue is a heap whose first share is served next.
type queue struct {
	shares     []*Share
	shift      int
	descending bool
}

func (q *queue) Len() int      { return len(q.shares) }
func (q *queue) Swap(i, j int) { q.shares[i], q.shares[j] = q.shares[j], q.shares[i] }
func (q *queue) Push(any)      {} // the set of shares never grows
func (q *queue) Pop() any      { return nil }

func (q *queue) Less(i, j int) bool {
	a, b := q.shares[i], q.shares[j]
	ahi, alo := bits.Mul64(scaled(a.Weight, q.shift), 2*uint64(b.Count)+1)
	bhi, blo := bits.Mul64(scaled(b.Weight, q.shift), 2*uint64(a.Count)+1)
	switch {
	case ahi != bhi:
		return ahi > bhi
	case alo != blo:
		return alo > blo
	case a.Count != b.Count:
		return a.Count < b.Count
	}
	if q.descending {
		return strings.Compare(a.Name, b.Name) > 0
	}
	return strings.Compare(a.Name, b.Name) < 0
}
