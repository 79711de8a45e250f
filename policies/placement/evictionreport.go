package placement

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// EvictionReport is that it was reported of a template that it should leave clusters, and has no place to go to.
type EvictionReport struct {
	// Of is what Stays.Of was then.
	Of string `json:"of"`
	// At is when it was reported, in whole seconds.
	At metav1.Time `json:"at"`
}

// Equal reports whether the two are of the same moment.
func (t *EvictionReport) Equal(other *EvictionReport) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Of == other.Of && t.At.Equal(&other.At)
}

// EvictionReportInterval is after how long the same is reported again that was over in between: clusters that come and go have it begin and end
// all the time, and an Event is kept for as long.
const EvictionReportInterval = time.Hour

// evictionReportOf is what is reported of a decision, or was before.
func evictionReportOf(p *placing, d *Decision) *EvictionReport {
	was, stays := p.record.EvictionReported, d.Record.Stays
	recent := was != nil && p.in.Now.Sub(was.At.Time) < EvictionReportInterval
	switch {
	case stays != nil && was != nil && was.Of == stays.Of && (recent || p.record.Stays != nil):
		return was
	case stays != nil:
		return &EvictionReport{Of: stays.Of, At: metav1.NewTime(p.in.Now.UTC().Truncate(time.Second))}
	case recent && len(d.Evicts) == 0:
		return was
	default:
		return nil
	}
}
