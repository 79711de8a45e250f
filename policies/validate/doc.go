// Package validate fills in the defaults of the control plane's own kinds, and
// says what is wrong with their objects. Kinds lists them.
//
// In go typed objects as a user wrote them, and on updates what they were; out
// come the defaulted object, errors that refuse it and warnings that do not.
// New ids and the time are arguments. The CRD schemas hold what a schema can;
// here is the rest.
package validate
