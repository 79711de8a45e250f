package placement

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Told is that it was told of a template that it should leave clusters, and has no place to go to.
type Told struct {
	// Of is what Stays said of it then.
	Of string `json:"of"`
	// At is when it was told, in whole seconds.
	At metav1.Time `json:"at"`
}

// Equal reports whether the two are of the same moment.
func (t *Told) Equal(other *Told) bool {
	if t == nil || other == nil {
		return t == other
	}
	return t.Of == other.Of && t.At.Equal(&other.At)
}

// ToldAgain is after how long the same is told again that was over in between: clusters that come and go have it begin and end
// all the time, and an Event is kept for as long.
const ToldAgain = time.Hour

// toldOf is what is told of a decision, or was before.
func toldOf(p *placing, d *Decision) *Told {
	was, stays := p.record.Told, d.Record.Stays
	recent := was != nil && p.in.Now.Sub(was.At.Time) < ToldAgain
	switch {
	case stays != nil && was != nil && was.Of == stays.Of && (recent || p.record.Stays != nil):
		return was
	case stays != nil:
		return &Told{Of: stays.Of, At: metav1.NewTime(p.in.Now.UTC().Truncate(time.Second))}
	case recent && len(d.Evicts) == 0:
		return was
	default:
		return nil
	}
}
