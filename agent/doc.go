// Package agent is the member's side of a cluster in pull mode: what the loops need
// that run beside a member and only now and then reach their hub.
//
// Its parts are hubconn, the connection to the hub; diskcache, what is known when there is
// none; selfregistration, the entry on the hub; heartbeat, the sign of life; nodeprofile, what the
// nodes have free; and credentials, the certificate. The loops themselves are those of push mode. No part of it
// decides what runs where.
package agent
