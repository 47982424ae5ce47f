// SPDX-License-Identifier: Apache-2.0

package pricefile

import (
	"math"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/jit-scheduler/jit-scheduler/provisioner/scheduling"
)

// maxPrice is USD per hour: more is a typing mistake.
const maxPrice = 100_000

// maxPercent likewise.
const maxPercent = 1000

// rule is: for offerings that match, price, or price times factor plus amount.
type rule struct {
	requirements scheduling.Requirements
	price        float64 // 0: an adjustment
	factor       float64
	amount       float64
}

// needsPrice says that the rule changes a price and gives none.
func (r *rule) needsPrice() bool { return r.price == 0 }

func (r *rule) apply(price float64) float64 {
	if r.price > 0 {
		return r.price
	}
	return price*r.factor + r.amount
}

func (s *ruleSpec) rule(path *field.Path) (rule, field.ErrorList) {
	r := rule{requirements: scheduling.NewRequirements(), factor: 1}
	var errs field.ErrorList
	for i := range s.Requirements {
		one, bad := requirement(s.Requirements[i], path.Child("requirements").Index(i))
		errs = append(errs, bad...)
		r.requirements.Add(one)
	}
	switch {
	case s.Price != nil && s.PriceAdjustment != nil:
		errs = append(errs, field.Forbidden(path.Child("priceAdjustment"), "a rule has either price or priceAdjustment"))
	case s.Price != nil:
		price, ok := decimal(string(*s.Price))
		if !ok || price <= 0 || price > maxPrice {
			errs = append(errs, field.Invalid(path.Child("price"), string(*s.Price), "must be USD per hour, more than 0"))
		}
		r.price = max(price, least)
	case s.PriceAdjustment != nil:
		if why := r.adjustment(string(*s.PriceAdjustment)); why != "" {
			errs = append(errs, field.Invalid(path.Child("priceAdjustment"), string(*s.PriceAdjustment), why))
		}
	default:
		errs = append(errs, field.Required(path.Child("price"), "or priceAdjustment"))
	}
	return r, errs
}

// adjustment reads "-30%" or "-0.01"; it returns what is wrong.
func (r *rule) adjustment(text string) string {
	if !strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "+") {
		return `must begin with + or -, such as "-30%" or "-0.01"; put it in quotes`
	}
	amount, percentage := strings.CutSuffix(text, "%")
	n, ok := decimal(amount)
	switch {
	case !ok:
		return `must be a percentage such as "-30%", or USD per hour such as "-0.01"`
	case percentage && (n <= -100 || n > maxPercent):
		return `must be more than -100% and at most +1000%`
	case percentage:
		r.factor = 1 + n/100
	case math.Abs(n) > maxPrice:
		return "is too much"
	default:
		r.amount = n
	}
	return ""
}

// decimal reads a plain finite number: no hexadecimal, no exponent, no words.
func decimal(text string) (float64, bool) {
	if strings.Trim(text, "+-.0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil && !math.IsInf(n, 0)
}
