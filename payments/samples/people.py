"""The hundred ordinary customers of the sample data: names as people write them, in their script."""

from __future__ import annotations

from typing import Final

NAMES: Final[tuple[tuple[str, str], ...]] = tuple(
    (name, mail)
    for line in """
Ana Silva=ana.silva|Bruno Costa=bruno.costa|Inês Carvalho=ines.carvalho|João Pereira=joao.pereira
Lucía Fernández=lucia.fernandez|Mateo García=mateo.garcia|Íñigo Etxeberria=inigo.etxeberria
Núria Puig i Ferrer=nuria.puig|Chloé Lefèvre=chloe.lefevre|Étienne Dubois=etienne.dubois
Maëlle Le Gall=maelle.legall|Anne-Sophie Girard=anne-sophie.girard|Jürgen Weiß=juergen.weiss
Käthe Schröder=kaethe.schroeder|Lena Vogel=lena.vogel|Till Østergård=till.ostergard
Søren Kjær=soren.kjaer|Åsa Lindqvist=asa.lindqvist|Björn Ek=bjorn.ek|Aino Mäkelä=aino.makela
Guðrún Jónsdóttir=gudrun.jonsdottir|Siobhán O'Brien=siobhan.obrien|Pádraig Ó Súilleabháin=padraig
Rhys ap Gwilym=rhys.apgwilym|Fiona MacDonald=fiona.macdonald|Oliver Smith=oliver.smith
Amelia Jones=amelia.jones|Harper Nguyen=harper.nguyen|Giulia Rossi=giulia.rossi
Niccolò D'Angelo=niccolo.dangelo|Łukasz Wójcik=lukasz.wojcik|Zofia Kamińska=zofia.kaminska
Jiří Dvořák=jiri.dvorak|Šárka Nováková=sarka.novakova|Ľubomír Hudák=lubomir.hudak
Ágnes Szűcs=agnes.szucs|Gergő Kovács=gergo.kovacs|Ștefan Țurcanu=stefan.turcanu
Ioana Brâncuși=ioana.brancusi|Đorđe Petrović=dorde.petrovic|Željka Horvat=zeljka.horvat
Ayşe Yılmaz=ayse.yilmaz|İbrahim Çelik=ibrahim.celik|Gökçe Şahin=gokce.sahin
Ilze Bērziņa=ilze.berzina|Žydrūnas Kazlauskas=zydrunas.kazlauskas|Õnne Pärn=onne.parn
Ольга Иванова=olga.ivanova|Дмитрий Смирнов=dmitri.smirnov|Світлана Шевченко=svitlana.shevchenko
Богдан Ткаченко=bohdan.tkachenko|Елена Петкова=elena.petkova|Милош Јовановић=milos.jovanovic
Ελένη Παπαδοπούλου=eleni.papadopoulou|Γιώργος Νικολάου=giorgos.nikolaou
Անի Հակոբյան=ani.hakobyan|Գարեգին Սարգսյան=garegin.sargsyan|ნინო ბერიძე=nino.beridze
გიორგი მაისურაძე=giorgi.maisuradze|נועה לוי=noa.levi|יעקב כהן=yaakov.cohen
فاطمة الزهراء=fatima.alzahra|يوسف حداد=youssef.haddad|مریم رضایی=maryam.rezaei
حسین کریمی=hossein.karimi|عائشہ صدیقی=ayesha.siddiqui|प्रिया शर्मा=priya.sharma
अर्जुन पटेल=arjun.patel|অনন্যা সেন=ananya.sen|রাহুল দত্ত=rahul.dutta|கார்த்திக் ராஜன்=karthik.rajan
மீனா சுந்தரம்=meena.sundaram|లక్ష్మి రెడ్డి=lakshmi.reddy|ಅನಿತಾ ಗೌಡ=anitha.gowda
ലേഖ നായർ=lekha.nair|ගයාන් පෙරේරා=gayan.perera|สมชาย ใจดี=somchai.jaidee
นภา ศรีสุข=napha.srisuk|ສົມພອນ ວົງສາ=somphone.vongsa|မြ မြ အေး=mya.mya.aye|សុខា ចាន់=sokha.chan
Nguyễn Thị Hoa=nguyen.thi.hoa|Trần Văn Đức=tran.van.duc|王小明=wang.xiaoming|李娜=li.na
陳怡君=chen.yijun|歐陽志遠=ouyang.zhiyuan|田中さくら=tanaka.sakura|佐藤健太=sato.kenta
高橋 みのり=takahashi.minori|김민준=kim.minjun|이서연=lee.seoyeon|남궁현=namgung.hyun
ገብረ ማርያም=gebre.mariam|ሰላም ተስፋዬ=selam.tesfaye|Adébáyò Ọlátúnjí=adebayo.olatunji
Chidinma Okafor=chidinma.okafor|Kwame Mensah=kwame.mensah|Amahle Dlamini=amahle.dlamini
Wanjirũ Kamau=wanjiru.kamau|Mele ʻAlohilani Kealoha=mele.kealoha|Te Rangi Hīroa=te.rangi
Xóchitl Hernández=xochitl.hernandez|José Ñaupari=jose.naupari|Luana Araújo=luana.araujo
Maximilian Freiherr von Lindenberg-Hohenstein=max.lindenberg|Bo Ek=bo.ek|Madonna=madonna
""".split("\n")
    for name, _sign, mail in (pair.partition("=") for pair in line.split("|"))
    if name
)
"""Name and the part of the address before the at sign."""
