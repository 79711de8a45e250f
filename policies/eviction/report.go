package eviction

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Report records that an Event was made about a template that should leave
// clusters and cannot.
type Report struct {
	// Of identifies what was reported.
	Of string `json:"of"`
	// At is when it was reported, in whole seconds.
	At metav1.Time `json:"at"`
}

// Equal reports whether the two are the same report.
func (r *Report) Equal(other *Report) bool {
	if r == nil || other == nil {
		return r == other
	}
	return r.Of == other.Of && r.At.Equal(&other.At)
}

// ReportInterval is after how long the same is reported again, if it was over in
// between: clusters that come and go make it begin and end all the time, and
// Events are kept for an hour.
const ReportInterval = time.Hour

// Unplaced is what a decision has to report.
type Unplaced struct {
	// Of identifies what cannot be placed, and why; empty for nothing.
	Of string
	// Before means that there was something to report until now, whatever it was.
	Before bool
	// Leaves means that the template leaves clusters.
	Leaves bool
}

// Next returns the report to record: the old one, a new one if something has to
// be reported now, or nil where it may be forgotten.
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

// NewReport returns a report that is made now.
func NewReport(of string, now time.Time) *Report {
	return &Report{Of: of, At: metav1.NewTime(now.UTC().Truncate(time.Second))}
}
