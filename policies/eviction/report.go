package eviction

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report is that it was reported of a template that it should leave clusters, and has no place to go to.
type Report struct {
	// Of tells apart what was reported then.
	Of string `json:"of"`
	// At is when it was reported, in whole seconds.
	At metav1.Time `json:"at"`
}

// Equal reports whether the two are of the same moment.
func (r *Report) Equal(other *Report) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Of == other.Of && r.At.Equal(&other.At)
}

// ReportInterval is after how long the same is reported again that was over in between: clusters that come and go have it begin and end
// all the time, and an Event is kept for as long.
const ReportInterval = time.Hour

// Unplaced is what a decision has to report.
type Unplaced struct {
	// Of tells apart what has no place to go to, and why; empty: there is none.
	Of string
	// Before says that there was some until now, whatever it was.
	Before bool
	// Leaves says that clusters are left.
	Leaves bool
}

// Next is what is reported now, or was before; nil where that is forgotten.
func (r *Report) Next(is Unplaced, now time.Time) *Report {
	recent := r != nil && now.Sub(r.At.Time) < ReportInterval
	switch {
	case is.Of != "" && r != nil && r.Of == is.Of && (recent || is.Before):
		return r
	case is.Of != "":
		return NewReport(is.Of, now)
	case recent && !is.Leaves:
		return r
	default:
		return nil
	}
}

// NewReport is one that is made now.
func NewReport(of string, now time.Time) *Report {
	return &Report{Of: of, At: metav1.NewTime(now.UTC().Truncate(time.Second))}
}
